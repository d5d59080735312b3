// Everybody can use the dashboard: by keyboard alone, without a script, on a narrow screen, with what a screen reader needs.

import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, kinds, renewed } from './cluster.mjs';
import { complaints, open, until, violations } from './harness.mjs';

describe('everybody', () => {
  let cluster, nodes, slot, operator;

  before(async () => {
    cluster = await Cluster.start();
    ({ nodes, slot } = cluster);
    operator = await cluster.visitor('operator');
  });

  after(() => cluster?.end());

  afterEach(() => assert.deepEqual(complaints(), [], 'no browser complains'));

  /** Presses the tab key until it comes to something; answers how often. */
  const tabTo = async (page, selector) => {
    for (let pressed = 1; pressed <= 200; pressed += 1) {
      await page.keyboard.press('Tab');
      if (await page.evaluate((selector) => document.activeElement.matches(selector), selector)) return pressed;
    }
    throw new Error(`the tab key does not come to ${selector}`);
  };
  const failed = () => until('billing is failed', async () => (await cluster.current()).billing.state === 'failed');

  test('by keyboard alone from the hours to a reset', async () => {
    await failed();
    const page = await open(operator, `${nodes.a.url}/`);
    await until('all hours are read', async () => (await page.$('td[data-s=loading]')) === null);
    await tabTo(page, '#filter');
    await page.keyboard.type('l');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=l/);
    // The grid is one stop of the tab key, and then there are arrows; the newest hour first.
    await tabTo(page, '#grid *');
    assert.equal(await page.evaluate(() => document.querySelectorAll('#grid tbody tr').length > 5), true);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.closest('#grid')), null, 'the grid is left by one key');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowUp');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'billing');
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/jobs\/billing\/.*Z$/);
    await tabTo(page, 'a[href$="/reset"]');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/reset$/);
    assert.match(await page.textContent('main'), /What will happen/);
    await tabTo(page, 'textarea[name=reason]');
    await page.keyboard.type('the disk was cleared');
    await tabTo(page, 'form.form button[type=submit]');
    await page.keyboard.press('Enter');
    await page.waitForURL(/did=reset/);
    assert.match(await page.textContent('.done-now'), /reset/i);
    assert.match(await page.textContent('#audit'), /ana.*the disk was cleared/s);
    await page.close();
  });

  test('each key does what the help says', async () => {
    const made = await cluster.visitor('operator', { timezoneId: 'Asia/Tokyo' });
    const page = await open(made, `${nodes.a.url}/help`);
    const listed = await page.$$eval('kbd', (keys) => keys.map((key) => key.textContent));
    const press = async (...keys) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    const at = (job, tag) => page.evaluate(([job, tag]) => {
      const one = document.activeElement;
      return one.tagName === tag && one.closest('tr')?.dataset.job === job;
    }, [job, tag]);
    const row = () => page.evaluate(() => [...document.querySelectorAll('.needs li .who a, #grid tbody th a')].indexOf(document.activeElement));
    const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.tagName);
    const comes = (path) => page.waitForURL((url) => `${url.pathname}${url.search}` === path);
    const hour = () => page.evaluate(() => [...document.activeElement.parentElement.children].indexOf(document.activeElement));
    const tries = {
      '/': async () => {
        await press('/');
        assert.equal(await focused(), 'filter');
      },
      j: async () => {
        await press('j', 'j');
        assert.equal(await row(), 1);
      },
      k: async () => {
        await press('j', 'j', 'k');
        assert.equal(await row(), 0);
      },
      '← ↑ → ↓': async () => {
        await tabTo(page, '#grid *');
        const last = await hour();
        await press('ArrowLeft');
        assert.equal(await hour(), last - 1);
        await press('ArrowDown');
        assert.ok(await at('pulse-b', 'TD'));
        await press('ArrowRight', 'ArrowUp');
        assert.ok(await at('pulse-a', 'TD'));
        assert.equal(await hour(), last);
      },
      Enter: async () => {
        await tabTo(page, '#grid *');
        await press('Enter');
        await page.waitForURL(/\/jobs\/pulse-a\/.*Z$|\/jobs\/pulse-a\?hour=/);
        await page.goBack();
        await tabTo(page, '#grid *');
        await press('Home', 'Enter');
        await comes('/jobs/pulse-a');
      },
      'g h': () => press('g', 'h').then(() => comes('/')),
      'g n': () => press('g', 'n').then(() => comes('/nodes')),
      'g s': () => press('g', 's').then(() => comes('/store')),
      r: async () => {
        await renewed(page, 'live');
        for (const how of ['polling', 'off', 'live']) {
          await press('r');
          await renewed(page, how);
        }
      },
      z: async () => {
        await press('z');
        await comes('/?q=pulse&zone=Asia%2FTokyo');
        assert.match(await page.textContent('main'), /hours in Tokyo/);
        await press('z');
        await comes('/?q=pulse&zone=UTC');
      },
      t: async () => {
        for (const theme of ['light', 'dark', 'system']) {
          await press('t');
          await comes(`/?q=pulse&theme=${theme}`);
          assert.equal(await page.getAttribute('html', 'data-theme'), theme === 'system' ? null : theme);
        }
      },
      '?': () => press('?').then(() => comes('/help')),
      Esc: async () => {
        await press('/', 'Escape');
        assert.equal(await focused(), 'BODY');
      },
      View: async () => {
        await page.click('.set summary');
        assert.ok(await page.isVisible('#letters input:checked'));
      },
    };
    assert.deepEqual(listed, Object.keys(tries), 'what the help lists is tried');
    for (const one of Object.values(tries)) {
      await page.goto(`${nodes.a.url}/?q=pulse`);
      await one();
    }
    await made.close();
  });

  test('single letters are switched off and on again and other keys are not', async () => {
    const made = await cluster.visitor('operator');
    const page = await open(made);
    // What the page makes use of.
    await page.addInitScript(() => {
      window.used = [];
      window.addEventListener('keydown', (event) => event.defaultPrevented && window.used.push(event.key));
    });
    const letters = [...'/jkghgngsrzt?'];
    const used = async (...keys) => {
      await page.evaluate(() => { window.used = []; });
      for (const key of keys) await page.keyboard.press(key);
      return page.evaluate(() => window.used);
    };
    const choose = async (on) => {
      await page.goto(`${nodes.a.url}/?q=pulse`);
      await page.click('.set summary');
      await page.setChecked('#letters input', on);
      await page.goto(`${nodes.a.url}/?q=pulse`);
      await renewed(page, 'live');
    };
    await choose(false);
    assert.deepEqual(await used(...letters), []);
    await tabTo(page, '#grid *');
    assert.deepEqual(await used('ArrowLeft', 'j', 'ArrowRight'), ['ArrowLeft', 'ArrowRight']);
    await page.click('.set summary');
    assert.ok(await page.isVisible('#letters'));
    await page.keyboard.press('Escape');
    assert.equal(await page.isVisible('#letters'), false, 'what was opened is closed');
    assert.equal(page.url(), `${nodes.a.url}/?q=pulse`);
    await choose(true);
    assert.deepEqual(await used('j', 'k'), ['j', 'k']);
    await made.close();
  });

  test('without a script the same pages filters and forms work', async () => {
    const plain = await cluster.visitor('operator', { javaScriptEnabled: false });
    const page = await open(plain, `${nodes.a.url}/`);
    await page.fill('#filter', 'state:paused');
    await page.click('.find button[type=submit]');
    await page.waitForURL(/q=state/);
    assert.deepEqual(await page.$$eval('#grid tbody th', (heads) => heads.map((head) => head.textContent)), ['stock-levels']);
    await page.click('#grid tbody th a');
    await page.click('a[href$="/resume"]');
    await page.click('form.form button[type=submit]');
    await page.waitForURL(/did=resume/);
    assert.match(await page.textContent('.done-now'), /resume/i);
    await page.click('.trail a');
    assert.match(await page.textContent('#grid'), /stock-levels/);
    await plain.close();
  });

  test('without a script from the hours to a reset', async () => {
    await failed();
    const plain = await cluster.visitor('operator', { javaScriptEnabled: false });
    const page = await open(plain, `${nodes.a.url}/`);
    await page.click('#grid tbody th a >> text=billing');
    await page.waitForURL(/\/jobs\/billing$/);
    await page.click('#recent tbody a');
    await page.click('a[href$="/reset"]');
    await page.fill('textarea[name=reason]', 'the disk was cleared by hand');
    await page.click('form.form button[type=submit]');
    await page.waitForURL(/did=reset/);
    assert.match(await page.textContent('.done-now'), /reset/i);
    assert.match(await page.textContent('#audit'), /ana.*the disk was cleared by hand/s);
    await plain.close();
  });

  test('without a script a page loads itself again where the address asks for that', async () => {
    const plain = await cluster.visitor('viewer', { javaScriptEnabled: false });
    const page = await open(plain, `${nodes.a.url}/?live=60`);
    assert.equal(await page.getAttribute('meta[http-equiv=refresh]', 'content'), '60');
    await page.goto(`${nodes.a.url}/`);
    assert.equal(await page.$('meta[http-equiv=refresh]'), null);
    await page.goto(`${nodes.a.url}/?q=pulse&live=5`);
    const shown = await page.textContent('#job-pulse-a');
    await until('it is loaded again', async () => (await page.textContent('#job-pulse-a')) !== shown);
    assert.equal(page.url(), `${nodes.a.url}/?q=pulse&live=5`);
    await plain.close();
  });

  test('a narrow page has no sideways scroll in either language', async () => {
    for (const locale of ['en', 'zh-CN']) {
      const phone = await cluster.visitor('operator', { viewport: { width: 320, height: 640 }, locale });
      const page = await open(phone);
      const wide = () => page.evaluate(() => document.documentElement.scrollWidth);
      for (const at of kinds(slot)) {
        await page.goto(nodes.a.url + at);
        assert.equal(await page.getAttribute('html', 'lang'), locale);
        assert.ok((await wide()) <= 320, `${at} ${locale}: ${await wide()} px`);
        await page.click('.set summary');
        assert.ok((await wide()) <= 320, `${at} ${locale}, with its settings: ${await wide()} px`);
      }
      page.expected = ['404'];
      await phone.close();
    }
  });

  test('no page has an accessibility violation in light or dark or Chinese or on a phone', async () => {
    const phone = { viewport: { width: 320, height: 640 } };
    for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark', locale: 'zh-CN' }, phone]) {
      const made = await cluster.visitor('operator', options);
      const page = await open(made);
      for (const at of kinds(slot)) {
        await page.goto(nodes.a.url + at);
        assert.deepEqual(await violations(page), [], `${at} ${JSON.stringify(options)}`);
      }
      await page.click('.set summary');
      assert.deepEqual(await violations(page), [], `settings ${JSON.stringify(options)}`);
      assert.equal(await page.getAttribute('html', 'lang'), options.locale ?? 'en');
      page.expected = ['404'];
      await made.close();
    }
  });

  test('colours are left to who forces them and motion to who wants it', async () => {
    const made = await cluster.visitor('viewer', { forcedColors: 'active', reducedMotion: 'reduce' });
    const page = await open(made, `${nodes.a.url}/?q=pulse`);
    assert.ok(await page.evaluate(() => matchMedia('(forced-colors: active)').matches));
    // What is left of a state where its colour is gone.
    const glyphs = await page.$$eval('.legend .g', (found) => found.map((one) => getComputedStyle(one, '::before').content));
    assert.equal(new Set(glyphs.filter((glyph) => /^".+"/.test(glyph))).size, 11, `${glyphs}`);
    const kept = await page.$$eval('main, main *', (all) => all.filter((one) => getComputedStyle(one).forcedColorAdjust === 'none').map((one) => one.outerHTML));
    assert.deepEqual(kept, [], 'no colour is kept against who forces others');
    assert.equal(await page.evaluate(() => {
      const cell = document.querySelector('#grid td.c');
      cell.classList.add('flash');
      return getComputedStyle(cell).animationName;
    }), 'none');
    await made.close();
  });
});

// Everybody can use the dashboard: by keyboard alone, without a script, on a narrow screen, with what a screen reader needs.

import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, renewed } from './cluster.mjs';
import { open, until, violations } from './harness.mjs';

describe('everybody', () => {
  let cluster, nodes, slot, operator;

  before(async () => {
    cluster = await Cluster.start();
    ({ nodes, slot } = cluster);
    operator = await cluster.visitor('operator');
  });

  after(() => cluster?.end());

  test('by keyboard alone from the hours to a reset', async () => {
    const page = await open(operator, `${nodes.a.url}/`);
    await until('billing needs somebody', async () => (await page.textContent('#needs')).includes('billing'));
    await page.keyboard.press('j');
    await until('a row has the focus', () => page.evaluate(() => document.activeElement.tagName === 'A'));
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'filter');
    await page.keyboard.type('billing');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=billing/);
    // One stop of the tab key for the whole grid, then arrows; the newest hour first.
    await page.focus('#grid td.c[tabindex="0"]');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/jobs\/billing\/.*Z$/);
    const reset = page.locator('a[href$="/reset"]');
    await reset.focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/reset$/);
    assert.match(await page.textContent('main'), /What will happen/);
    await page.focus('textarea[name=reason]');
    await page.keyboard.type('the disk was cleared');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(/did=reset/);
    assert.match(await page.textContent('.done-now'), /reset/i);
    assert.match(await page.textContent('#audit'), /ana.*the disk was cleared/s);
    assert.deepEqual(page.complaints, []);
    await page.close();
  });

  test('without a script the same pages filters and forms work', async () => {
    const plain = await chrome.newContext({ javaScriptEnabled: false });
    plain.setDefaultTimeout(60_000);
    await login(plain, 'operator');
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

  test('a narrow page has no sideways scroll', async () => {
    const phone = await context({ viewport: { width: 320, height: 640 } });
    const page = await open(phone);
    for (const at of ['/', `/jobs/billing`, `/jobs/billing/${slot}`, `/jobs/wide/${slot}/runs/1`, '/nodes', '/store', '/locks', '/activity', '/help']) {
      await page.goto(nodes.a.url + at);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 320, `${at}: ${wide} px`);
    }
    assert.deepEqual(page.complaints, []);
    await phone.close();
  });

  test('no page has an accessibility violation in light or dark or Chinese', async () => {
    for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark', locale: 'zh-CN' }]) {
      const made = await context(options, 'operator');
      const page = await open(made);
      const pages = ['/', '/jobs/billing', `/jobs/billing/${slot}`, `/jobs/billing/${slot}/mark-done`, '/nodes', '/store', '/locks', '/activity', '/help', '/login', '/jobs/none'];
      for (const at of pages) {
        await page.goto(nodes.a.url + at);
        assert.deepEqual(await violations(page), [], `${at} ${JSON.stringify(options)}`);
      }
      assert.equal(await page.getAttribute('html', 'lang'), options.locale ?? 'en');
      assert.deepEqual(page.complaints.filter((line) => !line.includes('404')), []);
      await made.close();
    }
  });

  test('colours are left to who forces them and motion to who wants it', async () => {
    const made = await context({ forcedColors: 'active', reducedMotion: 'reduce' });
    const page = await open(made, `${nodes.a.url}/?q=pulse`);
    const glyph = await page.$eval('.legend .g', (found) => getComputedStyle(found, '::before').content);
    assert.match(glyph, /^".+"/);
    assert.equal(await page.evaluate(() => {
      const cell = document.querySelector('#grid td.c');
      cell.classList.add('flash');
      return getComputedStyle(cell).animationName;
    }), 'none');
    await made.close();
  });
});

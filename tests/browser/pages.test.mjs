// What the pages show: three nodes on one Redis, looked at with Chromium.

import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { HtmlValidate } from 'html-validate';
import { Cluster, HOUR, cell, keyOf, kinds, renewed } from './cluster.mjs';
import { complaints, daemon, open, proxy, root, until } from './harness.mjs';

describe('the pages', () => {
  let cluster, place, nodes, slot, viewer, operator;

  before(async () => {
    cluster = await Cluster.start();
    ({ place, nodes, slot } = cluster);
    viewer = await cluster.visitor('viewer');
    operator = await cluster.visitor('operator');
  });

  after(() => cluster?.end());

  afterEach(() => assert.deepEqual(complaints(), [], 'no browser complains'));

  test('a failed slot stands first and each state has a glyph and a name', async () => {
    const page = await open(viewer, `${nodes.a.url}/`);
    await until('billing is failed', async () => (await page.textContent('#needs')).includes('billing'));
    const needs = await page.textContent('#needs');
    assert.match(needs, /failed: 2 of 2 attempts used/);
    assert.match(needs, /exit 1/);
    assert.match(needs, /since \d\d:\d\d/);
    await until('the grid is read', async () => (await cell(page, 'billing', slot)) === 'failed');
    assert.equal(await cell(page, 'wide', slot), 'done');
    assert.equal(await cell(page, 'weekly', slot), 'none');
    const legend = await page.$$eval('.legend li', (items) =>
      items.map((item) => [item.textContent.trim(), getComputedStyle(item.querySelector('.g'), '::before').content]));
    assert.equal(legend.length, 11);
    for (const [word, glyph] of legend) {
      assert.ok(word.length > 3, word);
      assert.match(glyph, /^".+"/, word);
    }
    assert.equal(new Set(legend.map(([, glyph]) => glyph)).size, 11, 'no two states have one glyph');
    assert.match(await page.title(), /^\(\d\)/);
    await page.close();
  });

  test('output is text whatever is in it', async () => {
    const page = await open(viewer, `${nodes.b.url}/jobs/billing/${slot}`);
    const text = await page.textContent('#attempts');
    assert.match(text, /<script>window\.hurt=1<\/script><img src=x/);
    assert.match(text, /\\x1b\[2J/);
    assert.match(text, /No space left on device/);
    assert.match(text, /not UTF-8/);
    assert.equal(await page.evaluate(() => window.hurt), undefined);
    assert.equal(await page.$$eval('#attempts img, #attempts script', (found) => found.length), 0);
    assert.match(await page.textContent('h1'), /failed: 2 of 2 attempts used, nobody tries again/);
    await page.goto(`${nodes.a.url}/jobs/wide/${slot}/runs/1`);
    const wide = await page.textContent('pre.output');
    assert.equal(wide.split('x').length - 1, 1_000_000, 'all of a line of a megabyte');
    assert.match(wide, /the end\s*$/);
    const raw = await viewer.request.get(`${nodes.a.url}/jobs/billing/${slot}/runs/1?raw`);
    assert.equal(raw.headers()['content-type'], 'text/plain; charset=utf-8');
    assert.match(raw.headers()['content-security-policy'], /sandbox/);
    await page.close();
  });

  test('a viewer sees no action and is refused one', async () => {
    const page = await open(viewer, `${nodes.a.url}/jobs/sweep/${slot}`);
    assert.equal((await page.$$('a[href$="/reset"], a[href$="/mark-done"], form.form')).length, 0);
    const asked = await fetch(`${nodes.a.url}/api/v1/slots/sweep/${slot}/reset`, {
      method: 'POST', body: '{"reason":"x"}',
      headers: { authorization: `Bearer ${cluster.keys.viewer}`, 'content-type': 'application/json', 'x-cronward': '1' },
    });
    assert.equal(asked.status, 403);
    assert.equal((await fetch(`${nodes.a.url}/`, { redirect: 'manual', headers: { accept: 'application/json' } })).status, 401);
    await page.close();
  });

  test('every page is valid HTML', async () => {
    const checker = new HtmlValidate({
      extends: ['html-validate:recommended'],
      rules: { 'no-trailing-whitespace': 'off', 'long-title': 'off', 'no-inline-style': 'error', 'void-style': 'off', 'no-redundant-role': 'off', 'doctype-style': 'off', 'prefer-native-element': 'off' },
    });
    for (const at of ['zh', 'en'].flatMap((lang) => kinds(slot).map((at) => `${at}?lang=${lang}`))) {
      const answer = await operator.request.get(nodes.a.url + at, { headers: { accept: 'text/html' } });
      const report = await checker.validateString(await answer.text());
      const found = report.results.flatMap((result) => result.messages.map((one) => `${one.line}:${one.column} ${one.ruleId}: ${one.message}`));
      assert.deepEqual(found, [], at);
    }
  });

  test('all of the hours fits beside what is next in either language', async () => {
    for (const locale of ['en', 'zh-CN']) {
      const made = await cluster.visitor('viewer', { viewport: { width: 1280, height: 700 }, locale });
      const page = await open(made, `${nodes.a.url}/`);
      await until('the pulse is counted', async () => /\d{2}/.test(await page.textContent('#job-pulse-a td.t')));
      const cut = await page.$$eval('#grid td.t, .scroll:has(#grid)', (found) =>
        found.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.slice(0, 80)));
      assert.deepEqual(cut, [], locale);
      await made.close();
    }
  });

  test('a command is copied by its button', async () => {
    const made = await cluster.visitor('viewer', { permissions: ['clipboard-read', 'clipboard-write'] });
    const page = await open(made, `${nodes.a.url}/jobs/billing/${slot}`);
    const buttons = page.locator('.copy button:visible');
    assert.ok((await buttons.count()) >= 3);
    for (const button of await buttons.all()) {
      const command = await button.locator('xpath=..').locator('code').textContent();
      await button.click();
      await until('it is said', async () => (await button.textContent()) === 'Copied');
      // Of the page's own world: the policy of the port lets no page read what is copied.
      assert.ok(command.length > 3);
      await page.evaluate(() => {
        const field = document.createElement('textarea');
        document.querySelector('main').append(field);
        field.focus();
      });
      await page.keyboard.press('Control+V');
      assert.equal(await page.evaluate(() => document.activeElement.value), command);
      await page.evaluate(() => document.activeElement.remove());
    }
    await made.close();
  });

  test('the zone of the reader is written beside each time', async () => {
    const made = await cluster.visitor('viewer', { timezoneId: 'Asia/Kolkata' });
    const page = await open(made, `${nodes.a.url}/`);
    await until('the script offers the zone', () => page.$('select[name=zone] option[value="Asia/Kolkata"], select[name=zone] option[value="Asia/Calcutta"]'));
    await page.keyboard.press('z');
    await page.waitForURL(/zone=Asia/);
    await until('the needs are shown in it', async () => /since \d\d:\d\d(:\d\d)? (Kolkata|Calcutta)/.test(await page.textContent('#needs')));
    assert.match(await page.textContent('main'), /hours in (Kolkata|Calcutta) \(:30\)/);
    await page.goto(`${nodes.a.url}/jobs/billing/${slot}`);
    assert.match(await page.textContent('main'), /(Kolkata|Calcutta)/, 'a cookie keeps it');
    await made.close();
  });

  test('behind nginx below another path all of it works', async () => {
    await cluster.write('below.toml', '/ops/cron');
    const below = await daemon(place, 'd', 'below.toml');
    const url = await proxy(place, below.address);
    const made = await cluster.visitor('operator', {}, url);
    const page = await open(made, `${url}/`);
    await renewed(page, 'live');
    const from = Date.now();
    await page.evaluate(() => new Promise((resolve) => {
      const source = new EventSource(`${document.body.dataset.base}/api/v1/events`);
      source.addEventListener('rows', () => resolve(source.close()));
    }));
    console.log(`# the first change came through nginx after ${Date.now() - from} ms`);
    await page.click('#grid tbody th a >> text=billing');
    await page.waitForURL(`${url}/jobs/billing`);
    await page.click('#recent tbody a');
    await page.waitForURL(/\/ops\/cron\/jobs\/billing\/.*Z$/);
    assert.equal(await page.evaluate(() => document.styleSheets.length), 1);
    for (const at of await page.$$eval('a[href], form[action]', (found) => found.map((one) => one.getAttribute('href') ?? one.getAttribute('action')))) {
      assert.ok(at.startsWith('/ops/cron') || /^https?:\/\/runbooks/.test(at) || at.startsWith('#'), at);
    }
    await made.close();
    below.child.kill('SIGTERM');
    await below.child.ended;
  });

  test('pictures are taken', async () => {
    const renew = process.env.CRONWARD_RENEW_PICTURES;
    const folder = renew ? path.join(root, 'docs/img') : path.join(root, 'target/pictures');
    await mkdir(folder, { recursive: true });
    if (renew) await history();
    for (const [language, locale] of [['en', 'en-US'], ['zh', 'zh-CN']]) {
      for (const colorScheme of ['light', 'dark']) {
        const made = await cluster.visitor('operator', { colorScheme, locale, viewport: { width: 1280, height: 700 } });
        const page = await open(made, `${nodes.a.url}/`);
        await until('all hours are read', async () => (await page.$('td[data-s=loading]')) === null);
        await page.screenshot({ path: path.join(folder, `hours-${colorScheme}-${language}.png`) });
        await page.goto(`${nodes.a.url}/jobs/billing/${slot}`);
        await page.screenshot({ path: path.join(folder, `slot-${colorScheme}-${language}.png`) });
        await made.close();
      }
    }
    for (const picture of ['hours', 'slot'].flatMap((what) => ['light', 'dark'].flatMap((scheme) => ['en', 'zh'].map((language) => `${what}-${scheme}-${language}.png`)))) {
      assert.ok((await readFile(path.join(folder, picture))).length > 10_000, picture);
    }
  });

  /** A day that was: slots that are over are run, as an operator would. */
  const history = async () => {
    const often = ['billing', 'catalog-sync', 'dns-check', 'export-ledger', 'fx-rates', 'invoice-pdf', 'orders-replica', 'payout-batch', 'search-index', 'sweep', 'tax-report'];
    // One slot of a job at a time, as the guard wants it.
    const left = often.map((job, at) => [job, Array.from({ length: 23 }, (_, back) => back + 1).filter((back) => (back + at) % 13)]);
    const work = async () => {
      for (let next = left.pop(); next; next = left.pop()) {
        for (const back of next[1]) {
          await cluster.command('trigger', `${next[0]}@${keyOf(Date.now() - back * HOUR)}`, '--past', '--yes');
        }
      }
    };
    await Promise.all([work(), work(), work()]);
  };
});

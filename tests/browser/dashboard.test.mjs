// The dashboard as people see it: three nodes on one Redis, looked at with Chromium.

import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { writeFile, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { HtmlValidate } from 'html-validate';
import { Place, browser, cronward, daemon, freePort, open, proxy, redis, root, until, violations } from './harness.mjs';

const LEASE = 6;
const HARM = '<script>window.hurt=1</script><img src=x onerror=\\"window.hurt=1\\">';

const keyOf = (at) => `${new Date(at).toISOString().slice(0, 13)}Z`;
const HOUR = 3_600_000;
const today = new Date();

/** Twelve quiet jobs and those that show something. What fails does so in this hour and the next: the clock may pass the full hour. */
function jobs(port) {
  const failing = `${keyOf(Date.now())}|${keyOf(Date.now() + HOUR)}`;
  // Nothing of these two is due by itself while the tests run. In India the hours turn at half past: in one of the two zones this hour is
  // less than half over, and its tick is half an hour away.
  const minute = today.getUTCMinutes();
  const away = `schedule = "${minute % 30 + 30} * * * *"\ntimezone = "${minute < 30 ? 'UTC' : 'Asia/Kolkata'}"`;
  const weekday = (today.getUTCDay() + 3) % 7;
  const fails = (command, code) => `case $CRONWARD_SLOT in ${failing}) ${command}; exit ${code};; *) echo fine;; esac`;
  const quiet = ['catalog-sync', 'dns-check', 'export-ledger', 'fx-rates', 'invoice-pdf', 'log-rotate', 'orders-replica',
    'payout-batch', 'search-index', 'stock-levels', 'tax-report', 'user-purge'];
  const quietly = quiet.map((name, at) => `[jobs.${name}]
schedule = "${at * 4} * * * *"
owner = "team-${at % 3 ? 'erp' : 'billing'}"
tags = ["${at % 2 ? 'nightly' : 'core'}"]
command = "echo ${name} $CRONWARD_SLOT; sleep 0.$(( $CRONWARD_FENCE % 9 ))"
`).join('\n');
  return `[store]
url = "redis://127.0.0.1:${port}"
op_timeout = "2s"

[node]
drain = "1s"

[http]
read_only = false
metrics_open = true

[http.auth]
tokens_file = "tokens"

[defaults]
lease_ttl = "${LEASE}s"
retry_delay = "10m"
retry_backoff = "fixed"

${quietly}
[jobs.billing]
schedule = "0 * * * *"
description = "Closes the books of the hour"
owner = "team-billing"
runbook = "https://runbooks.example/billing"
tags = ["erp"]
max_attempts = 2
retry_delay = "1s"
command = "${fails(`printf '%s\\\\n' 'connecting to ledger-2' '${HARM}' ; printf '\\\\033[2J\\\\033[1;31mred\\\\n\\\\377\\\\376 not UTF-8\\\\n'; echo 'No space left on device'`, 1)}"

[jobs.sweep]
schedule = "0 * * * *"
max_attempts = 3
command = "${fails('echo no route to host', 2)}"

[jobs.wide]
schedule = "0 * * * *"
output_limit = "1MiB"
command = "head -c 1000000 /dev/zero | tr '\\\\0' x; echo; echo the end"

[jobs.long]
${away}
timeout = "none"
command = "sleep 600"

[jobs.nobody]
schedule = "0 * * * *"
only_on = { gpu = "yes" }
command = "true"

[jobs.pulse-a]
schedule = "* * * * * *"
slot = "tick"
max_attempts = 1
command = "true"

[jobs.pulse-b]
schedule = "*/2 * * * * *"
slot = "tick"
max_attempts = 1
command = "true"

[jobs.weekly]
schedule = "0 6 * * ${weekday}"
timezone = "Europe/Berlin"
slot = "day"
command = "true"
`;
}

/** A token of each role, as the command makes them. */
async function tokens(place) {
  const made = {};
  const lines = [];
  for (const [role, name] of [['viewer', 'vic'], ['operator', 'ana']]) {
    const { stdout, stderr } = await cronward(place, 'token', 'new', '--role', role, '--name', name);
    const said = `${stdout}\n${stderr}`;
    made[role] = /cronward_[0-9a-f]{64}/.exec(said)[0];
    lines.push(said.split('\n').find((line) => line.startsWith(`${role} `)));
  }
  await writeFile(path.join(place.folder, 'tokens'), `${lines.join('\n')}\n`, { mode: 0o600 });
  return made;
}

describe('the dashboard', () => {
  let place, chrome, port, server, keys, nodes, viewer, operator;
  const context = async (options = {}, role = 'viewer') => {
    const made = await chrome.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    made.setDefaultTimeout(60_000);
    await login(made, role);
    return made;
  };
  /** Through the form, as people do. */
  const login = async (made, role, url = nodes.a.url) => {
    const page = await made.newPage();
    await page.goto(`${url}/login`);
    await page.fill('input[name=token]', keys[role]);
    await Promise.all([page.waitForURL((at) => !at.pathname.endsWith('/login')), page.click('form.form button[type=submit]')]);
    await page.close();
  };
  /** The slot in which everything has happened. */
  let happened;
  const slot = () => happened;
  const cell = (page, job, hour = happened) =>
    page.evaluate(([job, hour]) => {
      const heads = [...document.querySelectorAll('#grid thead th')].map((head) => head.dataset.hour);
      return document.getElementById(`job-${job}`)?.children[heads.indexOf(hour)]?.dataset.s;
    }, [job, hour]);

  before(async () => {
    place = await Place.make();
    port = await freePort();
    server = await redis(place, port);
    keys = await tokens(place);
    await writeFile(path.join(place.folder, 'jobs.toml'), jobs(port));
    const checked = await cronward(place, 'check', '--config', 'jobs.toml');
    assert.notEqual(checked.code, 78, checked.stderr);
    const started = await Promise.all(['a', 'b', 'c'].map((name) => daemon(place, name)));
    nodes = { a: started[0], b: started[1], c: started[2] };
    // What has to have happened before somebody looks.
    await cronward(place, 'pause', 'stock-levels', '--reason', 'the warehouse counts', '--yes', '--config', 'jobs.toml');
    // Nodes that start run what is due in this hour and was not done.
    happened = await until('this hour is run', async () => {
      const listed = JSON.parse((await cronward(place, 'jobs', '--json', '--config', 'jobs.toml')).stdout);
      const now = Object.fromEntries(listed.map((one) => [one.job, one.current]));
      const are = now.billing.state === 'failed' && now.wide.state === 'done' && now.sweep.state === 'retrying';
      return are && now.wide.slot === now.billing.slot && now.sweep.slot === now.billing.slot && now.billing.slot;
    });
    chrome = await browser(place);
    viewer = await context();
    operator = await context({}, 'operator');
  });

  after(async () => {
    await chrome?.close();
    await place?.end();
  });

  test('a failed slot stands first and each state has a glyph and a name', async () => {
    const page = await open(viewer, `${nodes.a.url}/`);
    await until('billing is failed', async () => (await page.textContent('#needs')).includes('billing'));
    const needs = await page.textContent('#needs');
    assert.match(needs, /failed: 2 of 2 attempts used/);
    assert.match(needs, /exit 1/);
    assert.match(needs, /since \d\d:\d\d/);
    await until('the grid is read', async () => (await cell(page, 'billing')) === 'failed');
    assert.equal(await cell(page, 'wide'), 'done');
    assert.equal(await cell(page, 'weekly'), 'none');
    const legend = await page.$$eval('.legend li', (items) =>
      items.map((item) => [item.textContent.trim(), getComputedStyle(item.querySelector('.g'), '::before').content]));
    assert.equal(legend.length, 10);
    for (const [word, glyph] of legend) {
      assert.ok(word.length > 3, word);
      assert.match(glyph, /^".+"/, word);
    }
    assert.equal(new Set(legend.map(([, glyph]) => glyph)).size, 10, 'no two states have one glyph');
    assert.match(await page.title(), /^\(\d\)/);
    assert.deepEqual(page.complaints, []);
    await page.close();
  });

  test('output is text whatever is in it', async () => {
    const page = await open(viewer, `${nodes.b.url}/jobs/billing/${slot()}`);
    const text = await page.textContent('#attempts');
    assert.match(text, /<script>window\.hurt=1<\/script><img src=x/);
    assert.match(text, /\\x1b\[2J/);
    assert.match(text, /No space left on device/);
    assert.match(text, /not UTF-8/);
    assert.equal(await page.evaluate(() => window.hurt), undefined);
    assert.equal(await page.$$eval('#attempts img, #attempts script', (found) => found.length), 0);
    assert.match(await page.textContent('h1'), /failed: 2 of 2 attempts used, nobody tries again/);
    assert.deepEqual(page.complaints, []);
    await page.goto(`${nodes.a.url}/jobs/wide/${slot()}/runs/1`);
    assert.match(await page.textContent('pre.output'), /x{1000}/);
    const raw = await viewer.request.get(`${nodes.a.url}/jobs/billing/${slot()}/runs/1?raw`);
    assert.equal(raw.headers()['content-type'], 'text/plain; charset=utf-8');
    assert.match(raw.headers()['content-security-policy'], /sandbox/);
    await page.close();
  });

  test('a run that is started elsewhere shows without a reload and so does its end by kill', async () => {
    const page = await open(viewer, `${nodes.a.url}/`);
    await until('the stream is open', async () => (await page.getAttribute('#link', 'data-link')) === 'live');
    await page.evaluate(() => { window.kept = true; });
    const elsewhere = place.start('elsewhere', process.env.CRONWARD_BIN ?? path.join(root, 'target/debug/cronward'),
      ['trigger', 'long', '--config', 'jobs.toml', '--yes']);
    const begun = Date.now();
    // Its slot may have begun in the hour before.
    const of = await until('long is running', async () => {
      for (const hour of [keyOf(Date.now()), keyOf(Date.now() - HOUR)]) {
        if ((await cell(page, 'long', hour)) === 'running') return hour;
      }
      return undefined;
    });
    const shown = Date.now();
    const claimed = Date.parse(JSON.parse((await cronward(place, 'show', 'long', '--json', '--config', 'jobs.toml')).stdout).runs.at(-1).started);
    console.log(`# a run started elsewhere was shown ${shown - claimed} ms after its claim, ${shown - begun} ms after its command was typed`);
    const killed = Date.now();
    elsewhere.kill('SIGKILL');
    await until('it is no longer running', async () => (await cell(page, 'long', of)) !== 'running');
    console.log(`# kill -9 was shown after ${((Date.now() - killed) / 1000).toFixed(1)} s, with a lease of ${LEASE} s`);
    assert.equal(await page.evaluate(() => window.kept), true, 'nothing was loaded again');
    assert.deepEqual(page.complaints, []);
    await page.close();
  });

  test('focus selection and place survive fifty patches', async () => {
    const page = await open(viewer, `${nodes.a.url}/?q=pulse`);
    await until('cells change', async () => (await page.$$('#grid tbody tr')).length === 2);
    await page.evaluate(() => {
      window.patches = 0;
      new MutationObserver((changes) => { window.patches += changes.length; })
        .observe(document.getElementById('grid'), { subtree: true, attributes: true, characterData: true, childList: true });
      const link = document.querySelector('#job-pulse-b a');
      link.focus();
      const range = document.createRange();
      range.selectNodeContents(document.getElementById('hours-title'));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.body.style.setProperty('min-height', '3000px');
      scrollTo(0, 37);
    });
    await until('fifty patches', () => page.evaluate(() => window.patches >= 50));
    const now = await page.evaluate(() => ({
      focus: document.activeElement.textContent, selected: getSelection().toString(), scroll: scrollY,
    }));
    assert.equal(now.focus, 'pulse-b');
    assert.match(now.selected, /hours/i);
    assert.equal(now.scroll, 37);
    assert.deepEqual(page.complaints, []);
    await page.close();
  });

  test('eight tabs are open and the ninth loads and a hidden one holds no stream', async () => {
    const streams = async () => {
      const text = await (await fetch(`${nodes.c.url}/metrics`)).text();
      return Number(/^cronward_http_streams\S* (\d+)/m.exec(text)?.[1] ?? -1);
    };
    const tabs = [];
    const many = await context();
    await login(many, 'viewer', nodes.c.url);
    for (let tab = 0; tab < 9; tab += 1) {
      tabs.push(await open(many, `${nodes.c.url}/`));
      // Only the tab in front is seen: the others are hidden, as they are for people.
      for (const hidden of tabs.slice(0, -1)) await hide(hidden, true);
    }
    assert.match(await tabs[8].textContent('h2'), /Needs you/i);
    await until('one stream', async () => (await streams()) === 1);
    await hide(tabs[0], false);
    await until('two streams', async () => (await streams()) === 2);
    await many.close();
    await until('no stream', async () => (await streams()) === 0);
  });

  const hide = (page, hidden) => page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);

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

  test('a viewer sees no action and is refused one', async () => {
    const page = await open(viewer, `${nodes.a.url}/jobs/sweep/${slot()}`);
    assert.equal((await page.$$('a[href$="/reset"], a[href$="/mark-done"], form.form')).length, 0);
    const asked = await fetch(`${nodes.a.url}/api/v1/slots/sweep/${slot()}/reset`, {
      method: 'POST', body: '{"reason":"x"}',
      headers: { authorization: `Bearer ${keys.viewer}`, 'content-type': 'application/json', 'x-cronward': '1' },
    });
    assert.equal(asked.status, 403);
    assert.equal((await fetch(`${nodes.a.url}/`, { redirect: 'manual', headers: { accept: 'application/json' } })).status, 401);
    await page.close();
  });

  test('a narrow page has no sideways scroll', async () => {
    const phone = await context({ viewport: { width: 320, height: 640 } });
    const page = await open(phone);
    for (const at of ['/', `/jobs/billing`, `/jobs/billing/${slot()}`, `/jobs/wide/${slot()}/runs/1`, '/nodes', '/store', '/locks', '/activity', '/help']) {
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
      const pages = ['/', '/jobs/billing', `/jobs/billing/${slot()}`, `/jobs/billing/${slot()}/mark-done`, '/nodes', '/store', '/locks', '/activity', '/help', '/login', '/jobs/none'];
      for (const at of pages) {
        await page.goto(nodes.a.url + at);
        assert.deepEqual(await violations(page), [], `${at} ${JSON.stringify(options)}`);
      }
      assert.equal(await page.getAttribute('html', 'lang'), options.locale ?? 'en');
      assert.deepEqual(page.complaints.filter((line) => !line.includes('404')), []);
      await made.close();
    }
  });

  test('every page is valid HTML', async () => {
    const checker = new HtmlValidate({
      extends: ['html-validate:recommended'],
      rules: { 'no-trailing-whitespace': 'off', 'long-title': 'off', 'no-inline-style': 'error', 'void-style': 'off', 'no-redundant-role': 'off', 'doctype-style': 'off', 'prefer-native-element': 'off' },
    });
    for (const at of ['/', '/?lang=zh', '/jobs/billing', `/jobs/billing/${slot()}`, `/jobs/billing/${slot()}/mark-done`, `/jobs/billing/${slot()}/runs/1`, '/nodes', '/store', '/locks', '/activity', '/help', '/login', '/jobs/none']) {
      const answer = await operator.request.get(nodes.a.url + at, { headers: { accept: 'text/html' } });
      const report = await checker.validateString(await answer.text());
      const found = report.results.flatMap((result) => result.messages.map((one) => `${one.line}:${one.column} ${one.ruleId}: ${one.message}`));
      assert.deepEqual(found, [], at);
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

  test('the zone of the reader is written beside each time', async () => {
    const made = await context({ timezoneId: 'Asia/Kolkata' });
    const page = await open(made, `${nodes.a.url}/`);
    await until('the script offers the zone', () => page.$('select[name=zone] option[value="Asia/Kolkata"], select[name=zone] option[value="Asia/Calcutta"]'));
    await page.keyboard.press('z');
    await page.waitForURL(/zone=Asia/);
    await until('the needs are shown in it', async () => /since \d\d:\d\d(:\d\d)? (Kolkata|Calcutta)/.test(await page.textContent('#needs')));
    assert.match(await page.textContent('main'), /hours in (Kolkata|Calcutta) \(:30\)/);
    await page.goto(`${nodes.a.url}/jobs/billing/${slot()}`);
    assert.match(await page.textContent('main'), /(Kolkata|Calcutta)/, 'a cookie keeps it');
    await made.close();
  });

  test('behind nginx below another path all of it works', async () => {
    await writeFile(path.join(place.folder, 'below.toml'), jobs(port).replace('[http]', '[http]\nbase_path = "/ops/cron"'));
    const below = await daemon(place, 'd', 'below.toml');
    const url = await proxy(place, below.address);
    const made = await chrome.newContext();
    made.setDefaultTimeout(60_000);
    await login(made, 'operator', url);
    const page = await open(made, `${url}/`);
    await until('the stream is open', async () => (await page.getAttribute('#link', 'data-link')) === 'live');
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
    assert.deepEqual(page.complaints, []);
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
        const made = await context({ colorScheme, locale, viewport: { width: 1280, height: 700 } }, 'operator');
        const page = await open(made, `${nodes.a.url}/`);
        await until('all hours are read', async () => (await page.$('td[data-s=loading]')) === null);
        await page.screenshot({ path: path.join(folder, `hours-${colorScheme}-${language}.png`) });
        await page.goto(`${nodes.a.url}/jobs/billing/${slot()}`);
        await page.screenshot({ path: path.join(folder, `slot-${colorScheme}-${language}.png`) });
        await made.close();
      }
    }
    assert.ok((await readFile(path.join(folder, 'hours-light-en.png'))).length > 10_000);
  });

  /** A day that was: slots that are over are run, as an operator would. */
  const history = async () => {
    const often = ['billing', 'catalog-sync', 'dns-check', 'export-ledger', 'fx-rates', 'invoice-pdf', 'orders-replica', 'payout-batch', 'search-index', 'sweep', 'tax-report'];
    // One slot of a job at a time, as the guard wants it.
    const left = often.map((job, at) => [job, Array.from({ length: 23 }, (_, back) => back + 1).filter((back) => (back + at) % 13)]);
    const work = async () => {
      for (let next = left.pop(); next; next = left.pop()) {
        for (const back of next[1]) {
          await cronward(place, 'trigger', `${next[0]}@${keyOf(Date.now() - back * HOUR)}`, '--past', '--yes', '--config', 'jobs.toml');
        }
      }
    };
    await Promise.all([work(), work(), work()]);
  };

  // The last one: nothing of the cluster is needed after it.
  test('a store that is away is told with its age and so is its return', async () => {
    const page = await open(viewer, `${nodes.a.url}/`);
    await until('the page is live', async () => (await page.getAttribute('#link', 'data-link')) === 'live');
    const from = Date.now();
    server.kill('SIGKILL');
    await server.ended;
    await page.waitForSelector('.strip.away');
    console.log(`# a store that was killed was told after ${((Date.now() - from) / 1000).toFixed(1)} s`);
    assert.match(await page.textContent('.strip.away'), /unreachable since/);
    assert.match(await page.textContent('#pulse'), /data \d+ (s|min) old/);
    assert.match(await page.textContent('#grid'), /billing/, 'what was known is still shown');
    const acting = await open(operator, `${nodes.a.url}/`);
    assert.equal((await acting.$$('.needs a[href$="/reset"], .needs a[href$="/trigger"]')).length, 0);
    await acting.close();
    const back = Date.now();
    await redis(place, port);
    await page.waitForSelector('.strip.away', { state: 'detached' });
    console.log(`# its return was told after ${((Date.now() - back) / 1000).toFixed(1)} s`);
    await page.close();
  });
});

// How a page renews itself while somebody looks, and what is told when that is not possible.

import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, HOUR, LEASE, cell, keyOf, renewed, streams } from './cluster.mjs';
import { complaints, daemon, freePort, open, program, proxy, redis, storeSays, until, violations, within } from './harness.mjs';

describe('a page that is looked at', () => {
  let cluster, place, nodes, slot, viewer, operator;

  before(async () => {
    cluster = await Cluster.start();
    ({ place, nodes, slot } = cluster);
    viewer = await cluster.visitor('viewer');
    operator = await cluster.visitor('operator');
  });

  after(() => cluster?.end());

  afterEach(() => assert.deepEqual(complaints(), [], 'no browser complains'));

  test('a run that is started elsewhere shows without a reload and so does its end by kill', async () => {
    const page = await open(viewer, `${nodes.a.url}/`);
    await renewed(page, 'live');
    await page.evaluate(() => { window.kept = true; });
    const elsewhere = place.start('elsewhere', program, ['trigger', 'long', '--config', 'jobs.toml', '--yes']);
    // Its slot may have begun in the hour before.
    const of = await until('long is running', async () => {
      for (const hour of [keyOf(Date.now()), keyOf(Date.now() - HOUR)]) {
        if ((await cell(page, 'long', hour)) === 'running') return hour;
      }
      return undefined;
    });
    const shown = Date.now();
    const claimed = Date.parse(JSON.parse((await cluster.command('show', 'long', '--json')).stdout).runs.at(-1).started);
    within('a run started elsewhere was shown', shown - claimed, 1);
    const killed = Date.now();
    elsewhere.kill('SIGKILL');
    await until('it is no longer running', async () => (await cell(page, 'long', of)) !== 'running');
    within('kill -9 was shown', Date.now() - killed, LEASE + 2);
    assert.equal(await page.evaluate(() => window.kept), true, 'nothing was loaded again');
    await page.close();
  });

  /** The slot of a job is not done: where its time has come, the nodes ran it as they started, before the job was paused. */
  const opened = async (page) => {
    const words = ['reset', 'stock-levels', '--reason', 'measured', '--yes'];
    await until('the store takes it', async () => (await cluster.command(...words)).code === undefined);
    await until('the slot is not done', () => page.evaluate(() => document.querySelector('#job-stock-levels td[data-s=done]') === null));
  };

  test('a page that was on its way while a cell changed does not take the change back', async () => {
    const page = await open(viewer, `${nodes.a.url}/?q=stock-levels`);
    await renewed(page, 'live');
    await until('all hours are read', async () => (await page.$('td[data-s=loading]')) === null);
    const done = () => page.evaluate(() => document.querySelectorAll('td[data-s=done]').length);
    await opened(page);
    let held;
    await page.route('**/?q=stock-levels', async (route) => {
      const response = await route.fetch();
      held ??= await response.text();
      await until('the change is told', async () => (await done()) === 1);
      await route.fulfill({ response });
    });
    await until('a page is on its way', async () => held !== undefined);
    assert.equal((await cluster.command('mark-done', 'stock-levels', '--reason', 'late page', '--yes')).code, undefined);
    const [, made] = /data-now="(.*?)"/.exec(held);
    await until('it has arrived', () => page.evaluate((made) => document.body.dataset.now >= made, made));
    assert.equal(await done(), 1, 'the older page is shown');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.close();
  });

  test('what changes in the store is in its cell soon after', async () => {
    const page = await open(viewer, `${nodes.a.url}/?q=stock-levels`);
    await renewed(page, 'live');
    // Not the cells of other hours, which are read for the first time.
    await until('all hours are read', async () => (await page.$('td[data-s=loading]')) === null);
    await opened(page);
    await page.evaluate(() => {
      window.cells = [];
      const row = document.getElementById('job-stock-levels');
      new MutationObserver((changes) => changes.forEach(({ target }) => window.cells.push([Date.now(), target.dataset.s])))
        .observe(row, { subtree: true, attributes: true, attributeFilter: ['data-s'] });
    });
    const took = [];
    for (let turn = 0; turn < 30; turn += 1) {
      const marks = turn % 2 === 0;
      const begun = Date.now();
      // The job is paused: no node runs the slot that is reset.
      const verb = [marks ? 'mark-done' : 'reset', 'stock-levels', '--reason', 'measured', '--yes'];
      await until('the store takes it', async () => (await cluster.command(...verb)).code === undefined);
      const shown = await until('the cell says so', () => page.evaluate(
        ([begun, marks]) => window.cells.find(([at, state]) => at >= begun && (state === 'done') === marks)?.[0],
        [begun, marks],
      ));
      took.push(shown - begun);
    }
    took.sort((a, b) => a - b);
    within('each of thirty changes was shown', took[29], 1);
    console.log(`# from the start of a command that changes a slot to its cell: p50 ${took[14]} ms, p95 ${took[28]} ms, at most ${took[29]} ms`);
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
      // What is renewed each second.
      range.selectNodeContents(document.querySelector('#job-pulse-a td.t'));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.body.style.setProperty('min-height', '3000px');
      scrollTo(0, 37);
    });
    const selected = await page.evaluate(() => getSelection().toString());
    await until('fifty patches', () => page.evaluate(() => window.patches >= 50));
    const now = await page.evaluate(() => ({
      focus: document.activeElement.textContent, selected: getSelection().toString(), scroll: scrollY,
    }));
    assert.equal(now.focus, 'pulse-b');
    assert.equal(now.selected, selected);
    assert.match(selected, /done/);
    assert.equal(now.scroll, 37);
    await page.close();
  });

  test('eight tabs are open and the ninth loads and a hidden one holds no stream', async () => {
    const tabs = [];
    const many = await cluster.visitor('viewer', {}, nodes.c.url);
    for (let tab = 0; tab < 9; tab += 1) {
      tabs.push(await open(many, `${nodes.c.url}/`));
      // Only the tab in front is seen: the others are hidden, as they are for people.
      for (const hidden of tabs.slice(0, -1)) await hide(hidden, true);
    }
    assert.match(await tabs[8].textContent('h2'), /Needs you/i);
    await until('one stream', async () => (await streams(nodes.c.url)) === 1);
    await hide(tabs[0], false);
    await until('two streams', async () => (await streams(nodes.c.url)) === 2);
    await many.close();
    await until('no stream', async () => (await streams(nodes.c.url)) === 0);
  });

  const hide = (page, hidden) => page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);

  /** Stops the clock of those pages: their timers come when the test says so, and what the server tells them comes as ever. */
  const stopClock = async (made, page) => made.clock.pauseAt(await page.evaluate(() => Date.now() + 1_000));

  /** What a cell that changes each second shows now. */
  const pulse = (page) => page.textContent('#job-pulse-a td.c:nth-last-child(3)');
  /** Waits until the server would show something else. */
  const moved = (page, shown) => until('it changes', async () => {
    const answer = await page.request.get(page.url(), { headers: { accept: 'text/html' } });
    const [row] = /id="job-pulse-a".*/.exec(await answer.text());
    return [...row.matchAll(/<i>(.*?)<\/i>/g)].at(-1)[1] !== shown;
  });

  const unit = { s: 1_000, min: 60_000, h: HOUR, d: 24 * HOUR };
  /** How old the page says that it is. */
  const age = async (page) => {
    const [, number, of] = /data (\d+) (\w+) old/.exec(await page.textContent('#pulse'));
    return number * unit[of];
  };

  /** A page whose timers come when the test says so, which counts how often it asks for itself. */
  const counting = async (made, url) => {
    await made.clock.install();
    const page = await open(made);
    await page.addInitScript(() => {
      const ask = window.fetch;
      window.looks = 0;
      window.fetch = (...words) => {
        window.looks += 1;
        return ask(...words);
      };
    });
    await page.goto(url);
    return page;
  };
  const looks = (page) => page.evaluate(() => window.looks);

  test('a page that gets no stream looks every ten seconds until it gets one', async () => {
    const places = new AbortController();
    const headers = { authorization: `Bearer ${cluster.keys.viewer}` };
    const all = Array.from({ length: 64 }, () => fetch(`${nodes.c.url}/api/v1/events`, { headers, signal: places.signal }));
    for (const one of await Promise.all(all)) assert.equal(one.status, 200);
    const made = await cluster.visitor('viewer');
    const page = await counting(made, `${nodes.c.url}/?q=pulse`);
    await renewed(page, 'polling');
    assert.equal(await page.textContent('#link'), 'not live: looking every 10 s');
    await stopClock(made, page);
    let [shown, begun] = [await pulse(page), await looks(page)];
    await moved(page, shown);
    await until('a first look', async () => {
      await made.clock.runFor(1_000);
      return (await looks(page)) > begun;
    });
    await until('what it found is shown', async () => (await pulse(page)) !== shown);
    for (const look of [1, 2]) {
      [shown, begun] = [await pulse(page), await looks(page)];
      await moved(page, shown);
      await made.clock.runFor(8_000);
      assert.equal((await looks(page)) - begun, 0, `too early, look ${look}`);
      await made.clock.runFor(2_000);
      assert.equal((await looks(page)) - begun, 1, `look ${look}`);
      await until('a change is shown', async () => (await pulse(page)) !== shown);
    }
    places.abort();
    await until('there is a place', async () => (await streams(nodes.c.url)) === 0);
    await made.clock.runFor(30_000);
    await renewed(page, 'live');
    page.expected = ['503'];
    await made.close();
  });

  test('a node that is not heard any more is told in the title and since when until it is', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const lone = await daemon(place, 'lone', 'jobs.toml', address);
    const made = await cluster.visitor('viewer', { timezoneId: 'Asia/Kolkata' });
    // The browser's clock is wrong, and its zone was not chosen.
    await made.clock.install({ time: Date.now() - 3 * HOUR });
    const page = await open(made, `${lone.url}/`);
    await renewed(page, 'live');
    await until('billing is read', async () => (await cell(page, 'billing', slot)) === 'failed');
    await stopClock(made, page);
    lone.child.kill('SIGKILL');
    await lone.child.ended;
    await until('it is told', async () => {
      await made.clock.runFor(1_000);
      return (await page.getAttribute('#link', 'data-link')) === 'lost';
    });
    const [, hours, minutes] = /^not connected since (\d\d):(\d\d):\d\d UTC$/.exec(await page.textContent('#link')).map(Number);
    const apart = Math.abs(new Date().getUTCHours() * 60 + new Date().getUTCMinutes() - hours * 60 - minutes);
    assert.ok(Math.min(apart, 24 * 60 - apart) < 30, `${hours}:${minutes} is told, by the clock of the store`);
    assert.equal(await page.getAttribute('#link', 'class'), 'alarm');
    assert.match(await page.title(), /^! /);
    assert.equal(await cell(page, 'billing', slot), 'failed', 'what was known is still shown');
    await made.clock.runFor(10_000);
    assert.ok((await age(page)) >= 10_000, 'with its age');
    await daemon(place, 'lone-again', 'jobs.toml', address);
    await renewed(page, 'live');
    assert.doesNotMatch(await page.title(), /^!/);
    page.expected = ['net::ERR'];
    await made.close();
  });

  test('a node that leaves says goodbye and the page goes on at another one', async () => {
    await cluster.write('below.toml', '/ops/cron');
    const two = await Promise.all(['left', 'right'].map((name) => daemon(place, name, 'below.toml')));
    const url = await proxy(place, ...two.map((one) => one.address));
    const made = await cluster.visitor('viewer', {}, url);
    const page = await open(made);
    await page.addInitScript(() => {
      window.opened = [];
      window.EventSource = class extends EventSource {
        constructor(...words) {
          super(...words);
          window.opened.push(this);
          this.addEventListener('bye', () => { this.left = true; });
        }
      };
    });
    await page.goto(`${url}/`);
    await renewed(page, 'live');
    await page.evaluate(() => { window.kept = true; });
    const has = async (one) => (await streams(`${one.url}/ops/cron`)) === 1;
    const [leaves, stays] = (await has(two[0])) ? two : two.toReversed();
    leaves.child.kill('SIGTERM');
    await until('the other one has the stream', () => has(stays));
    await renewed(page, 'live');
    const seen = await page.evaluate(() => {
      const [first, last] = [window.opened[0], window.opened.at(-1)];
      return { kept: window.kept, left: first.left, closed: first.readyState === 2, open: last.readyState === 1 && !last.left };
    });
    assert.deepEqual(seen, { kept: true, left: true, closed: true, open: true });
    assert.doesNotMatch(await page.title(), /^!/);
    await made.close();
  });

  test('a row that has another place goes there when somebody asks and not before', async () => {
    const page = await open(viewer, `${nodes.a.url}/?sort=state`);
    await until('all hours are read', async () => (await page.$('td[data-s=loading]')) === null);
    await renewed(page, 'live');
    const order = () => page.$$eval('#grid tbody tr', (rows) => rows.map((row) => row.dataset.job));
    const before = await order();
    const place = before.indexOf('sweep');
    await page.hover('#job-sweep');
    await until('it is done', async () => !(await cluster.command('mark-done', 'sweep', '--reason', 'by hand', '--yes')).code);
    await until('it is told', () => page.isVisible('#moved'));
    assert.match(await page.textContent('#moved'), /^\d+ jobs changed place – sort$/);
    assert.deepEqual(await order(), before);
    // Another job may have been the first to change its place.
    await until('the row has its place', async () => {
      if (await page.isVisible('#moved')) await page.click('#moved button');
      return (await order()).indexOf('sweep') > place;
    });
    assert.equal(await page.evaluate(() => document.activeElement.closest('#grid') !== null), true, 'the focus is led to the rows');
    assert.deepEqual((await order()).toSorted(), before.toSorted());
    await page.close();
  });

  test('updates are switched off and to every ten seconds and on again', async () => {
    const made = await cluster.visitor('viewer');
    const page = await counting(made, `${nodes.b.url}/?q=pulse`);
    await renewed(page, 'live');
    const choose = async (updates) => {
      await page.click('.set summary');
      await page.selectOption('select[name=updates]', updates);
      await page.click('form.view button[type=submit]');
      await page.waitForURL((url) => url.search.includes(`updates=${updates}`));
    };
    await choose('off');
    await renewed(page, 'off');
    assert.equal(await page.textContent('#link'), 'updates are off');
    await until('no stream', async () => (await streams(nodes.b.url)) === 0);
    await made.clock.runFor(60_000);
    assert.equal(await looks(page), 0, 'nobody asks');
    await choose('10s');
    await renewed(page, 'polling');
    await until('it looks', async () => {
      await made.clock.runFor(1_000);
      return (await looks(page)) > 0;
    });
    assert.equal(await streams(nodes.b.url), 0);
    await page.keyboard.press('r');
    await renewed(page, 'off');
    await page.keyboard.press('r');
    await renewed(page, 'live');
    const shown = await pulse(page);
    await until('a change is shown', async () => (await pulse(page)) !== shown);
    await page.reload();
    await renewed(page, 'live');
    await made.close();
  });

  test('what changes is said aloud once in ten seconds', async () => {
    const made = await cluster.visitor('viewer');
    await made.clock.install();
    const page = await open(made, `${nodes.a.url}/?q=pulse`);
    await renewed(page, 'live');
    await until('all hours are read', async () => (await page.$('td[data-s=loading]')) === null);
    await stopClock(made, page);
    await page.evaluate(() => {
      Object.assign(window, { said: [], changes: 0 });
      const heard = () => window.said.push(document.getElementById('said').textContent);
      new MutationObserver(heard).observe(document.getElementById('said'), { childList: true, characterData: true, subtree: true });
      new MutationObserver(() => { window.changes += 1; }).observe(document.querySelector('#grid tbody'), { subtree: true, attributes: true });
    });
    // The page's clock stands but for these steps. A change that comes just before a step is said at once, and what came after it
    // at the end of the step: one sentence more than steps, in all.
    for (const steps of [1, 2, 3, 4]) {
      await made.clock.runFor(10_000);
      await page.evaluate(() => { window.changes = 0; });
      await until('ten changes', () => page.evaluate(() => window.changes >= 10));
      const said = await page.evaluate(() => window.said);
      assert.ok(said.length === steps || said.length === steps + 1, `${steps} steps: ${said.join('; ')}`);
      assert.match(said.at(-1), /^pulse-[ab]: /);
    }
    assert.equal(await page.getAttribute('#said', 'aria-live'), 'polite');
    await made.close();
  });

  test('a browser whose clock is wrong shows how long ago things were by the clock of the store', async () => {
    for (const off of [-3, 3]) {
      const made = await cluster.visitor('viewer');
      await made.clock.install({ time: Date.now() + off * HOUR });
      const page = await open(made);
      for (const at of ['/', `/jobs/billing/${slot}`]) {
        await page.goto(nodes.a.url + at);
        await until('there are times', () => page.$('time[data-rel]'));
        // The script has counted on.
        await made.clock.runFor(2_000);
        for (const [exact, text] of await page.$$eval('time[data-rel]', (times) => times.map((time) => [time.dateTime, time.textContent]))) {
          const [, ahead, number, of] = /^(in )?(\d+) (\w+)(?: ago)?$/.exec(text);
          const [told, truly] = [number * unit[of] * (ahead ? 1 : -1), Date.parse(exact) - Date.now()];
          assert.ok(Math.abs(told - truly) < unit[of] + HOUR / 2, `${at}: "${text}" of ${exact}, ${off} h off`);
        }
        assert.ok((await age(page)) < HOUR / 2, `${await page.textContent('#pulse')}, ${off} h off`);
      }
      await made.close();
    }
  });

  test('a store that is full is told though it answers and so is its room', async () => {
    const page = await open(viewer, `${nodes.a.url}/`);
    await renewed(page, 'live');
    const memory = (most) => storeSays(cluster.port, 'config', 'set', 'maxmemory', most);
    const from = Date.now();
    await memory('1');
    const needs = async () => /cannot use the store, though it answers: .*maxmemory/.test(await page.textContent('.needs'));
    await until('it is told', needs);
    within('a store that is full was told', Date.now() - from, 12);
    assert.match(await page.textContent('#grid'), /billing/, 'what was known is still shown');
    const back = Date.now();
    await memory('0');
    await until('it is told no more', async () => !(await needs()));
    console.log(`# that it has room again was told after ${((Date.now() - back) / 1000).toFixed(1)} s`);
    await page.close();
  });

  // The last one: nothing of the cluster is needed after it.
  test('a store that is away is told with its age and so is its return', async () => {
    const page = await open(viewer, `${nodes.a.url}/`);
    await renewed(page, 'live');
    const acting = await open(operator, `${nodes.a.url}/`);
    await until('billing may be run again', () => acting.$('.needs a[href$="/retry"]'));
    // What is read of a slot cannot be read then.
    acting.expected = ['503'];
    const from = Date.now();
    cluster.server.kill('SIGKILL');
    await cluster.server.ended;
    await page.waitForSelector('.strip.away');
    within('a store that was killed was told', Date.now() - from, 12);
    assert.match(await page.textContent('.strip.away'), /unreachable since/);
    assert.match(await page.textContent('#pulse'), /data \d+ (s|min) old/);
    assert.match(await page.textContent('#grid'), /billing/, 'what was known is still shown');
    await until('actions are off', async () => (await acting.$$('.needs a[href$="/retry"]')).length === 0);
    assert.match(await acting.textContent('.strip.away'), /Actions are off while the store cannot be used/);
    for (const at of ['/', `/jobs/billing/${slot}`, '/nodes']) {
      await acting.setViewportSize({ width: 1440, height: 900 });
      await acting.goto(nodes.a.url + at);
      for (const colorScheme of ['light', 'dark']) {
        await acting.emulateMedia({ colorScheme });
        assert.deepEqual(await violations(acting), [], `${at} ${colorScheme}`);
      }
      await acting.setViewportSize({ width: 320, height: 640 });
      const wide = await acting.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 320, `${at}: ${wide} px`);
    }
    await acting.close();
    const back = Date.now();
    await redis(place, cluster.port);
    await page.waitForSelector('.strip.away', { state: 'detached' });
    console.log(`# its return was told after ${((Date.now() - back) / 1000).toFixed(1)} s`);
    await page.close();
  });
});

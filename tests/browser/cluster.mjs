// Three nodes on one Redis, with jobs that show something, and people who look at them with Chromium.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Place, browser, cronward, daemon, freePort, redis, until } from './harness.mjs';

export const LEASE = 6;
export const HOUR = 3_600_000;
const HARM = '<script>window.hurt=1</script><img src=x onerror=\\"window.hurt=1\\">';

/** The hour of an instant, as a slot is named by it. */
export const keyOf = (at) => `${new Date(at).toISOString().slice(0, 13)}Z`;

/** Twelve quiet jobs and those that show something. What fails does so in this hour and the next: the clock may pass the full hour. */
function jobs(port) {
  const failing = `${keyOf(Date.now())}|${keyOf(Date.now() + HOUR)}`;
  // Nothing of these two is due by itself while the tests run. In India the hours turn at half past: in one of the two zones this hour is
  // less than half over, and its tick is half an hour away.
  const today = new Date();
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
schedule = "* * * * * *"
slot = "hour"
description = "Closes the books of the hour"
owner = "team-billing"
runbook = "https://runbooks.example/billing"
tags = ["erp"]
max_attempts = 2
retry_delay = "1s"
command = "${fails(`printf '%s\\\\n' 'connecting to ledger-2' '${HARM}' ; printf '\\\\033[2J\\\\033[1;31mred\\\\n\\\\377\\\\376 not UTF-8\\\\n'; echo 'No space left on device'`, 1)}"

[jobs.sweep]
schedule = "* * * * * *"
slot = "hour"
max_attempts = 3
command = "${fails('echo no route to host', 2)}"

[jobs.wide]
schedule = "* * * * * *"
slot = "hour"
output_limit = "1MiB"
command = "head -c 1000000 /dev/zero | tr '\\\\0' x; echo; echo the end"

[jobs.long]
${away}
timeout = "none"
command = "sleep 600"

[jobs.nobody]
schedule = "* * * * * *"
slot = "hour"
only_on = { gpu = "yes" }
command = "true"

[jobs.pulse-a]
schedule = "* * * * * *"
slot = "tick"
max_attempts = 1
concurrency = "allow"
command = "true"

[jobs.pulse-b]
schedule = "*/2 * * * * *"
slot = "tick"
max_attempts = 1
concurrency = "allow"
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

export class Cluster {
  /** Until what has to have happened before somebody looks has happened. */
  static async start() {
    const cluster = new Cluster();
    try {
      await cluster.begin();
    } catch (error) {
      await cluster.end();
      throw error;
    }
    return cluster;
  }

  async begin() {
    this.place = await Place.make();
    this.port = await freePort();
    this.server = await redis(this.place, this.port);
    this.keys = await tokens(this.place);
    await this.write('jobs.toml');
    const checked = await this.command('check');
    assert.notEqual(checked.code, 78, checked.stderr);
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => daemon(this.place, name)));
    this.nodes = { a, b, c };
    await this.command('pause', 'stock-levels', '--reason', 'the warehouse counts', '--yes');
    // Nodes that start run what is due in this hour and was not done.
    this.slot = await until('this hour is run', async () => {
      const now = await this.current();
      const are = now.billing.state === 'failed' && now.wide.state === 'done' && now.sweep.state === 'retrying';
      return are && now.wide.slot === now.billing.slot && now.sweep.slot === now.billing.slot && now.billing.slot;
    });
    this.chrome = await browser(this.place);
  }

  async end() {
    await this.chrome?.close();
    await this.place?.end();
  }

  /** The jobs as a file of this name; below a path where there is one. */
  write(file, base) {
    const text = jobs(this.port);
    return writeFile(path.join(this.place.folder, file), base ? text.replace('[http]', `[http]\nbase_path = "${base}"`) : text);
  }

  command(...words) {
    return cronward(this.place, ...words, '--config', 'jobs.toml');
  }

  /** The current slot of each job. */
  async current() {
    const listed = JSON.parse((await this.command('jobs', '--json')).stdout);
    return Object.fromEntries(listed.map((one) => [one.job, one.current]));
  }

  /** Somebody who is logged in: through the form, as people do. */
  async visitor(role, options = {}, url = this.nodes.a.url) {
    const made = await this.chrome.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    made.setDefaultTimeout(60_000);
    const page = await made.newPage();
    await page.goto(`${url}/login`);
    await page.fill('input[name=token]', this.keys[role]);
    await Promise.all([page.waitForURL((at) => !at.pathname.endsWith('/login')), page.click('form.form button[type=submit]')]);
    await page.close();
    return made;
  }
}

/** How many streams a node has. */
export async function streams(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^cronward_http_streams\S* (\d+)/m.exec(text)?.[1] ?? -1);
}

/** What a job's cell shows of an hour. */
export const cell = (page, job, hour) =>
  page.evaluate(([job, hour]) => {
    const heads = [...document.querySelectorAll('#grid thead th')].map((head) => head.dataset.hour);
    return document.getElementById(`job-${job}`)?.children[heads.indexOf(hour)]?.dataset.s;
  }, [job, hour]);

/** How the page says that it is renewed: live, polling, lost, off. */
export const renewed = (page, how) => until(`the page is ${how}`, async () => (await page.getAttribute('#link', 'data-link')) === how);

/** Addresses of pages, of each kind one; what an action asks before it is done comes last. */
export const kinds = (slot) => ['/', '/jobs/billing', `/jobs/billing/${slot}`, `/jobs/billing/${slot}/runs/1`, `/jobs/wide/${slot}/runs/1`, '/nodes',
  '/store', '/locks', '/activity', '/help', '/login', '/jobs/none',
  ...['reset', 'mark-done', 'unlock', 'retry'].map((action) => `/jobs/billing/${slot}/${action}`),
  ...['trigger', 'pause', 'resume'].map((action) => `/jobs/billing/${action}`)];

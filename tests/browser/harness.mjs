// Real daemons, a real Redis, a real proxy and a real browser, each on a free port of 127.0.0.1 and in a folder of its own; all are ended
// by their process ids. Nothing here sleeps: it waits for conditions, and what is promised within a time is judged with much room (`within`).

import { spawn, execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { mkdtemp, rm, writeFile, mkdir } from 'node:fs/promises';
import { readFileSync, openSync, closeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const run = promisify(execFile);
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const program = process.env.CRONWARD_BIN ?? path.join(root, 'target/debug/cronward');
/** For machines that do much else: a condition that never comes is told after this long. */
const LONGEST = 90_000;

/** What a machine that does much else may need besides: what a page promises is judged with it. */
const SLACK = 20;

/** Something took so many milliseconds, and is promised within these seconds. */
export function within(what, took, seconds) {
  console.log(`# ${what} after ${(took / 1000).toFixed(1)} s`);
  if (took > (seconds + SLACK) * 1000) throw new Error(`${what} after ${took / 1000} s: within ${seconds} s is promised`);
}

/** Waits until something is true, and answers it. */
export async function until(what, condition) {
  const from = Date.now();
  let last;
  while (Date.now() - from < LONGEST) {
    try {
      const value = await condition();
      if (value) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`not in ${LONGEST / 1000} s: ${what}${last ? `: ${last}` : ''}`);
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** What was started, and has to be gone in the end. */
export class Place {
  constructor(folder) {
    this.folder = folder;
    this.children = new Set();
  }

  static async make() {
    return new Place(await mkdtemp(path.join(tmpdir(), 'cronward-browser-')));
  }

  start(name, command, words, environment = {}) {
    const log = openSync(path.join(this.folder, `${name}.log`), 'a');
    const child = spawn(command, words, { cwd: this.folder, stdio: ['ignore', log, log], env: { ...process.env, ...environment } });
    closeSync(log);
    child.ended = new Promise((resolve) => child.once('exit', resolve));
    child.once('exit', () => this.children.delete(child));
    this.children.add(child);
    return child;
  }

  log(name) {
    return readFileSync(path.join(this.folder, `${name}.log`), 'utf8');
  }

  async end() {
    for (const child of [...this.children]) {
      child.kill('SIGKILL');
      await child.ended;
    }
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

export async function redis(place, port) {
  const server = place.start('redis', 'redis-server', [
    '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', place.folder,
  ]);
  await until('redis answers', async () => (await storeSays(port, 'ping')).includes('PONG'));
  return server;
}

/** What Redis answers to a command. */
export const storeSays = async (port, ...words) => (await run('redis-cli', ['-p', String(port), ...words])).stdout;

/** A command of cronward in the place's folder. One that fails is no error here. */
export async function cronward(place, ...words) {
  try {
    return await run(program, words, { cwd: place.folder, maxBuffer: 8 * 1024 * 1024, env: process.env });
  } catch (error) {
    return { stdout: error.stdout ?? '', stderr: error.stderr ?? String(error), code: error.code };
  }
}

export async function daemon(place, name, file = 'jobs.toml', listen = '127.0.0.1:0') {
  const child = place.start(name, program, ['run', '--config', file, '--node', name, '--listen', listen, '--log-format', 'json']);
  const line = await until(`${name} listens`, () => {
    if (child.exitCode !== null) throw new Error(place.log(name));
    return place.log(name).split('\n').find((line) => line.includes('listens for HTTP'));
  });
  const address = /127\.0\.0\.1:\d+/.exec(line)[0];
  return { child, address, url: `http://${address}` };
}

/** nginx as Debian has it, with its buffering on, in front of nodes below /ops/cron/. One process: workers outlive a master that is killed. */
export async function proxy(place, ...addresses) {
  const port = await freePort();
  await mkdir(path.join(place.folder, 'nginx'), { recursive: true });
  const file = path.join(place.folder, 'nginx.conf');
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${place.folder}/nginx/${kind};`);
  await writeFile(file, `daemon off; master_process off; error_log stderr; pid ${place.folder}/nginx.pid; worker_processes 1;
events { worker_connections 256; }
http { access_log off; ${kinds.join(' ')}
  upstream nodes { ${addresses.map((address) => `server ${address};`).join(' ')} }
  server { listen 127.0.0.1:${port};
    location /ops/cron/ { proxy_pass http://nodes; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host; }
  } }\n`);
  place.start('nginx', '/usr/sbin/nginx', ['-e', 'stderr', '-c', file]);
  const url = `http://127.0.0.1:${port}/ops/cron`;
  await until('nginx answers', async () => (await fetch(`${url}/healthz`)).ok);
  return url;
}

export async function browser(place) {
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', `--crash-dumps-dir=${place.folder}`,
    ],
  });
}

const opened = [];

/** What browsers complained of on the pages that were opened since the last time, but for what a page has as `expected`. */
export function complaints() {
  const unexpected = (page) => page.complaints.filter((line) => !page.expected.some((word) => line.includes(word)));
  return opened.splice(0).flatMap(unexpected);
}

/** A page that notes what a browser complains of: errors, and reports of the content security policy. */
export async function open(context, url) {
  const page = await context.newPage();
  page.complaints = [];
  page.expected = [];
  opened.push(page);
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) page.complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => page.complaints.push(`error: ${error}`));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
  });
  if (url) await page.goto(url);
  return page;
}

const axe = readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** What axe finds wrong, in words. By evaluation: the page's own policy lets in no script of another's. */
export async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() =>
    // eslint-disable-next-line no-undef
    axe.run(document, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }));
  return found.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`);
}

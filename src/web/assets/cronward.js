// @ts-check
// The dashboard's one script. Every page works without it; with it pages renew themselves, the grid is moved in by keys, and times count
// on. It writes text, attributes and what this server rendered, and nothing that it made HTML of itself.

/**
 * @typedef {{ units: string[], ago: string, ahead: string, age: string, live: string, polling: string, off: string, lost: string,
 *   moved: string, zone: string, attempts: string, attempt: string, count: string, unread: string, copied: string,
 *   states: Record<string, string>, attempted: string[] }} Words
 * @typedef {{ state: string, attempts: number, done: number, due: number, unread: number }} Cell
 * @typedef {{ rows: { job: string, cells: (Cell & { hour: string })[] }[] }} RowsChange
 * @typedef {{ hour: string, cells: Record<string, Cell> }} CellsChange
 * @typedef {{ job: string, hour: string, cell: Cell }} Change
 */

const body = document.body;
const base = body.dataset.base ?? '';
/** @type {Words} */
const words = JSON.parse(body.dataset.words ?? '{}');

/** From one look to the next, where the stream does not tell. */
const LOOK = 10_000;
/** Changes that come together are read together: what concerns the cluster soon, the words of rows, whose cells were changed at once, later. */
const SOON = 1_000;
const TOGETHER = 4_000;
/** Between two sentences for those who listen. */
const SAY = 10_000;
/** A stream that was refused is asked for again. */
const AGAIN = 30_000;

/** @param {string} selector @param {ParentNode} [within] @returns {HTMLElement[]} */
const all = (selector, within = document) => /** @type {HTMLElement[]} */ ([...within.querySelectorAll(selector)]);
/** @param {string} id */
const byId = (id) => document.getElementById(id);
/** @param {string} text @param {(string | number)[]} values */
function fill(text, ...values) {
  let said = text;
  for (const value of values) said = said.replace('{}', String(value));
  return said;
}

// ---- Time: counted from the store's clock, which came with the page. --------------------------------------------------------------

let received = performance.now();
const storeNow = () => Date.parse(body.dataset.now ?? '') + (performance.now() - received);

/** @param {number} milliseconds */
function span(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [number, unit] =
    seconds < 120 ? [seconds, 0] : seconds < 7200 ? [Math.floor(seconds / 60), 1]
      : seconds < 172800 ? [Math.floor(seconds / 3600), 2] : [Math.floor(seconds / 86400), 3];
  return fill(words.units[unit] ?? '{}', number);
}

/** What stands beside a time, as the server names it. @param {string} zone */
const cityOf = (zone) => zone.split('/').at(-1)?.replaceAll('_', ' ') ?? zone;

/** An instant as the page writes its times: in the zone that was chosen. @param {number} at */
function exact(at) {
  const chosen = document.querySelector('select[name=zone] option[selected]');
  const told = (/** @type {string} */ timeZone) =>
    `${new Date(at).toLocaleTimeString('en', { timeZone, hourCycle: 'h23' })} ${cityOf(timeZone)}`;
  try {
    return told(chosen instanceof HTMLOptionElement ? chosen.value : 'UTC');
  } catch {
    // A zone that this browser does not know.
    return told('UTC');
  }
}

/** @param {Element} element @param {string} text */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tick() {
  const now = storeNow();
  const age = document.querySelector('[data-age]');
  if (age && body.dataset.read) setText(age, fill(words.age, span(now - Date.parse(body.dataset.read))));
  // What the store's clock says is not known while the store is away.
  if (document.querySelector('.strip.away')) return;
  for (const time of all('time[data-rel]')) {
    const at = Date.parse(time.getAttribute('datetime') ?? '');
    if (isHeld(time)) continue;
    setText(time, at > now ? fill(words.ahead, span(at - now)) : fill(words.ago, span(now - at)));
  }
}

// ---- Patches: in place, and never what is being read. ------------------------------------------------------------------------------

/** Whether somebody is in it: with the keyboard, or with a selection. @param {Node} element */
function isHeld(element) {
  if (document.activeElement !== body && element.contains(document.activeElement)) return true;
  const selection = document.getSelection();
  return !!selection && !selection.isCollapsed && (selection.containsNode(element, true) || element.contains(selection.anchorNode));
}

/** @param {HTMLElement} cell */
function flash(cell) {
  cell.classList.remove('flash');
  void cell.offsetWidth;
  cell.classList.add('flash');
}

/** Makes a cell what another one is; answers whether it was not. @param {HTMLElement} cell @param {HTMLElement} wanted */
function patchCell(cell, wanted) {
  let changed = false;
  for (const name of ['data-s', 'data-n', 'data-c', 'data-d']) {
    const value = wanted.getAttribute(name);
    if (cell.getAttribute(name) === value) continue;
    changed ||= name !== 'data-d';
    if (value === null) cell.removeAttribute(name);
    else cell.setAttribute(name, value);
  }
  const [text, next] = [cell.querySelector('i'), wanted.querySelector('i')];
  if (text && next) setText(text, next.textContent ?? '');
  if (cell.title) cell.removeAttribute('title');
  return changed;
}

/** @param {HTMLTableRowElement} row @param {HTMLTableRowElement} wanted @param {boolean} quietly */
function patchRow(row, wanted, quietly) {
  [...row.children].forEach((child, index) => {
    const [cell, next] = [/** @type {HTMLElement} */ (child), /** @type {HTMLElement | undefined} */ (wanted.children[index])];
    if (!next) return;
    if (cell.classList.contains('c')) {
      const loading = cell.dataset.s === 'loading';
      if (patchCell(cell, next) && !quietly && !loading) {
        flash(cell);
        say(`${row.dataset.job}: ${cell.textContent}`);
      }
    } else {
      const [name, renamed] = [cell.querySelector('a'), next.querySelector('a')];
      if (name && renamed) renamed.tabIndex = name.tabIndex;
      if (cell.innerHTML !== next.innerHTML && !isHeld(cell)) cell.innerHTML = next.innerHTML;
    }
  });
}

/** The newest order of the rows, for when somebody asks for it. @type {HTMLTableElement | null} */
let sorted = null;

/** @param {HTMLTableElement} table @param {HTMLTableElement} wanted */
function patchTable(table, wanted) {
  const heads = (/** @type {HTMLTableElement} */ of) => all('th[data-hour]', of).map((head) => head.dataset.hour).join();
  const moved = heads(table) !== heads(wanted);
  if (moved && table.tHead && wanted.tHead) table.tHead.innerHTML = wanted.tHead.innerHTML;
  for (const row of wanted.tBodies[0]?.rows ?? []) {
    const own = /** @type {HTMLTableRowElement | null} */ (byId(row.id));
    if (own) patchRow(own, row, moved);
  }
  const order = (/** @type {HTMLTableElement} */ of) => [...(of.tBodies[0]?.rows ?? [])].map((row) => row.id);
  const [own, next] = [order(table), order(wanted)];
  const places = Math.max(own.length, next.length);
  const changed = Array.from({ length: places }, (_, at) => own[at] !== next[at]).filter(Boolean).length;
  sorted = changed ? wanted : null;
  const notice = byId('moved');
  if (!notice) return;
  notice.hidden = !changed;
  const text = notice.querySelector('span');
  if (changed && text) setText(text, fill(words.moved, changed));
}

function sort() {
  const own = /** @type {HTMLTableElement | null} */ (byId('grid'));
  const [rows, wanted] = [own?.tBodies[0], sorted?.tBodies[0]];
  if (!own || !rows || !wanted) return;
  const kept = new Map([...rows.rows].map((row) => [row.id, row]));
  rows.replaceChildren(...[...wanted.rows].map((row) => kept.get(row.id) ?? document.importNode(row, true)));
  sorted = null;
  roam(own);
  const notice = byId('moved');
  // The button that was pressed goes away: whoever goes on by keys is led to the rows.
  if (notice?.contains(document.activeElement)) all('[tabindex="0"]', own)[0]?.focus();
  if (notice) notice.hidden = true;
}

/** @param {Document} page */
function patch(page) {
  for (const name of ['now', 'read', 'live', 'words']) {
    const value = page.body.dataset[name];
    if (value !== undefined) body.dataset[name] = value;
  }
  received = performance.now();
  document.title = page.title;
  for (const next of all('[data-patch][id]', page)) {
    const own = byId(next.id);
    if (!own || own.innerHTML === next.innerHTML || isHeld(own)) continue;
    own.innerHTML = next.innerHTML;
    own.className = next.className;
    copies(own);
  }
  const [own, next] = [byId('grid'), page.getElementById('grid')];
  if (own && next) patchTable(/** @type {HTMLTableElement} */ (own), /** @type {HTMLTableElement} */ (next));
  // The first row came, or the last one went.
  else if (!!own !== !!next && !isHeld(/** @type {Node} */ (byId('main')))) location.reload();
  tick();
}

// ---- How a page renews itself: by one stream for as long as somebody sees it, else by looking. -------------------------------------

/** @type {EventSource | null} */
let stream = null;
let mode = body.dataset.updates ?? 'live';
/** @type {number | undefined} */
let soon;
let due = 0;
/** @type {number | undefined} */
let later;
/** When the server was heard last, by the store's clock. */
let heard = storeNow();
let failed = false;

function show() {
  const place = byId('link');
  if (!place) return;
  const text = mode === 'off' ? words.off : failed ? fill(words.lost, exact(heard)) : stream?.readyState === 1 ? words.live : words.polling;
  place.hidden = false;
  place.className = failed ? 'alarm' : 'quiet';
  place.dataset.link = mode === 'off' ? 'off' : failed ? 'lost' : stream?.readyState === 1 ? 'live' : 'polling';
  setText(place, text);
  const bare = document.title.replace(/^! /, '');
  document.title = failed ? `! ${bare}` : bare;
}

let looking = false;
/** The newest change of each cell while a page is on its way, which may be older. @type {Map<string, Change & { moment: string }>} */
const meanwhile = new Map();
async function look() {
  window.clearTimeout(soon);
  soon = undefined;
  if (looking || document.hidden) return;
  looking = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store', credentials: 'same-origin' });
    if (answer.redirected || answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    failed = false;
    heard = storeNow();
    catchUp(page);
    patch(page);
  } catch {
    failed = true;
  } finally {
    looking = false;
    meanwhile.clear();
  }
  show();
}

/** @param {number} span */
function lookIn(span) {
  if (mode === 'off') return;
  const at = Date.now() + span;
  if (soon !== undefined && due <= at) return;
  window.clearTimeout(soon);
  due = at;
  soon = window.setTimeout(look, span);
}

/** The states whose word is another one on the board. @type {Record<string, string>} */
const NAMED = { not_due: 'none', not_read: 'loading' };

/** The cell of a job in an hour, where the page has it. @param {Document} page @param {string} job @param {string} hour */
function cellAt(page, job, hour) {
  const hours = all('#grid th[data-hour]', page).map((head) => head.dataset.hour);
  const at = hours.indexOf(`${hour.slice(0, 13)}Z`);
  const cell = at < 0 ? undefined : page.getElementById(`job-${job}`)?.children[1 + at];
  return cell instanceof HTMLElement && cell.classList.contains('c') ? cell : undefined;
}

/** One cell that changed, at once; the rest of its row comes with the next look. @param {string} moment @param {Change} change */
function patchNow(moment, { job, hour, cell: change }) {
  if (looking) meanwhile.set(`${job} ${hour}`, { moment, job, hour, cell: change });
  const cell = cellAt(document, job, hour);
  if (!cell) return;
  const was = cell.dataset.s;
  if (!become(cell, change) || was === 'loading') return;
  flash(cell);
  say(`${job}: ${cell.textContent}`);
}

/** Answers whether the cell was something else. @param {HTMLElement} cell @param {Cell} change */
function become(cell, change) {
  const wanted = cellOf(change);
  if (cell.dataset.d !== undefined) wanted.dataset.d = '';
  return patchCell(cell, wanted);
}

/** What was told while the page was on its way, and is not in it. @param {Document} page */
function catchUp(page) {
  const made = new URLSearchParams(page.body.dataset.live?.split('?')[1]).get('after') ?? '';
  for (const { moment, job, hour, cell: change } of meanwhile.values()) {
    const cell = isAfter(moment, made) && cellAt(page, job, hour);
    if (cell) become(cell, change);
  }
}

/** Whether a moment (`<process>-<number>`) is after another one. Those of two processes are in no order: what was told came later.
 * @param {string} moment @param {string} other */
function isAfter(moment, other) {
  const apart = (/** @type {string} */ of) => [of.slice(0, of.lastIndexOf('-')), Number(of.slice(of.lastIndexOf('-') + 1))];
  const [[process, number], [another, before]] = [apart(moment), apart(other)];
  return process !== another || (number ?? 0) > (before ?? 0);
}

/** As the server would have written it. @param {Cell} change */
function cellOf(change) {
  const state = NAMED[change.state] ?? change.state;
  const word = words.states[state] ?? state;
  const cell = document.createElement('td');
  const text = document.createElement('i');
  const counts = words.attempted.includes(state) && change.attempts > (state === 'done' || state === 'running' ? 1 : 0);
  cell.dataset.s = state;
  if (change.due > 1 || (change.due === 1 && change.unread > 0)) {
    cell.dataset.c = String(change.done);
    // English says how many are done first, Chinese how many there are.
    const chinese = document.documentElement.lang.startsWith('zh');
    text.textContent = fill(words.count, word, ...(chinese ? [change.due, change.done] : [change.done, change.due]));
    if (change.unread > 0) text.textContent += fill(words.unread, change.unread);
  } else if (counts) {
    cell.dataset.n = String(change.attempts);
    text.textContent = fill(change.attempts === 1 ? words.attempt : words.attempts, word, change.attempts);
  } else text.textContent = word;
  cell.append(text);
  return cell;
}

function connect() {
  disconnect();
  const path = body.dataset.live;
  if (mode !== 'live' || !path || document.hidden) return;
  const source = new EventSource(base + path);
  stream = source;
  source.onopen = () => {
    failed = false;
    heard = storeNow();
    show();
  };
  source.onerror = () => {
    // A refusal is final for an EventSource, a broken connection is not: it comes back by itself.
    if (source.readyState === 2 && stream === source) {
      stream = null;
      later = window.setTimeout(connect, AGAIN);
    }
    show();
  };
  source.addEventListener('rows', (event) => {
    heard = storeNow();
    const { rows } = /** @type {RowsChange} */ (JSON.parse(event.data));
    for (const { job, cells } of rows) for (const cell of cells) patchNow(event.lastEventId, { job, hour: cell.hour, cell });
    lookIn(TOGETHER);
  });
  source.addEventListener('cells', (event) => {
    heard = storeNow();
    const { hour, cells } = /** @type {CellsChange} */ (JSON.parse(event.data));
    for (const [job, cell] of Object.entries(cells)) patchNow(event.lastEventId, { job, hour, cell });
    lookIn(TOGETHER);
  });
  for (const kind of ['hours', 'jobs', 'nodes', 'store', 'concerns', 'reset']) {
    source.addEventListener(kind, () => lookIn(SOON));
  }
  // This node leaves: whoever stands in front has another one.
  source.addEventListener('bye', () => {
    disconnect();
    later = window.setTimeout(connect, SOON);
    lookIn(SOON);
  });
}

function disconnect() {
  window.clearTimeout(later);
  stream?.close();
  stream = null;
}

function seen() {
  if (document.hidden) return disconnect();
  if (mode !== 'off') void look();
  connect();
}

/** @param {string} next */
function switchMode(next) {
  mode = next;
  document.cookie = `cronward-updates=${mode}; Path=${base || '/'}; Max-Age=31536000; SameSite=Strict`;
  // An older choice in the address would come before the cookie.
  const url = new URL(location.href);
  url.searchParams.delete('updates');
  history.replaceState(history.state, '', url);
  disconnect();
  seen();
  show();
}

/** What is said to those who listen: one sentence in ten seconds at the most, and the newest one. */
let said = 0;
/** @param {string} sentence */
function say(sentence) {
  const place = byId('said');
  if (!place || Date.now() - said < SAY) return;
  said = Date.now();
  setText(place, sentence);
}

// ---- The grid under keys: one stop of the tab key, arrows inside. ------------------------------------------------------------------

/** @param {HTMLElement} cell */
function addressOf(cell) {
  const row = /** @type {HTMLTableRowElement} */ (cell.parentElement);
  const head = all('#grid thead th')[[...row.children].indexOf(cell)];
  return `${base}/go?job=${encodeURIComponent(row.dataset.job ?? '')}&hour=${encodeURIComponent(head?.dataset.hour ?? '')}`;
}

/** What the arrows move to: the name of a job, and its hours that are shown. */
const STOPS = 'tbody th a, td.c';

/** @param {HTMLElement} table */
function roam(table) {
  table.setAttribute('role', 'grid');
  for (const cell of all('td.c', table)) cell.setAttribute('role', 'gridcell');
  const stops = all(STOPS, table);
  const stop = stops.find((one) => one.getAttribute('tabindex') === '0') ?? all('tbody tr:first-child td.c', table).at(-1);
  for (const one of stops) one.tabIndex = one === stop ? 0 : -1;
}

/** What has the focus is where the tab key comes back to. @param {Event} event */
function stay(event) {
  const stop = event.target instanceof HTMLElement && event.target.matches(STOPS) ? event.target : null;
  const table = stop?.closest('#grid');
  if (!stop || !table) return;
  for (const other of all('[tabindex="0"]', table)) other.tabIndex = -1;
  stop.tabIndex = 0;
}

/** @param {HTMLElement} stop @param {string} key */
function neighbour(stop, key) {
  const row = /** @type {HTMLTableRowElement} */ (stop.closest('tr'));
  const within = (/** @type {Element | null} */ of) => (of ? all('th a, td.c', of).filter((one) => one.offsetParent !== null) : []);
  const own = within(row);
  const at = own.indexOf(stop);
  switch (key) {
    case 'ArrowLeft': return own[at - 1];
    case 'ArrowRight': return own[at + 1];
    case 'Home': return own[0];
    case 'End': return own.at(-1);
    case 'ArrowUp': return within(row.previousElementSibling)[at];
    default: return within(row.nextElementSibling)[at];
  }
}

/** @param {KeyboardEvent} event */
function keyInGrid(event) {
  const stop = event.target instanceof HTMLElement && event.target.closest('#grid') && event.target.closest(STOPS);
  if (!(stop instanceof HTMLElement)) return false;
  if (event.key === 'Enter' && stop.matches('td')) {
    location.assign(addressOf(stop));
    return true;
  }
  if (!['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End'].includes(event.key)) return false;
  neighbour(stop, event.key)?.focus();
  return true;
}

// ---- Keys ------------------------------------------------------------------------------------------------------------------------

const LETTERS = 'cronward-letters';
const letters = () => localStorage.getItem(LETTERS) !== 'off';
let pending = '';

/** @param {number} step */
function moveRow(step) {
  const links = all('#grid tbody th a, .needs li .who a');
  const at = links.findIndex((link) => link === document.activeElement);
  const row = document.activeElement?.closest('tr');
  const from = at >= 0 || !row ? at : links.findIndex((link) => link.closest('tr') === row);
  links[Math.min(links.length - 1, Math.max(0, from + step))]?.focus();
}

/** @param {string} name @param {string} value */
function choose(name, value) {
  const url = new URL(location.href);
  url.searchParams.set(name, value);
  location.assign(url);
}

/** @param {KeyboardEvent} event */
function key(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target instanceof HTMLElement ? event.target : body;
  if (target.matches('input, textarea, select')) {
    if (event.key === 'Escape') target.blur();
    return;
  }
  if (keyInGrid(event)) return event.preventDefault();
  if (event.key === 'Escape') {
    for (const details of /** @type {HTMLDetailsElement[]} */ (all('details[open]'))) details.open = false;
    return;
  }
  if (!letters()) return;
  const pressed = pending + event.key;
  pending = event.key === 'g' && pending === '' ? 'g' : '';
  const next = act(pressed, target);
  if (next) event.preventDefault();
}

/** @param {string} pressed @param {HTMLElement} target */
function act(pressed, target) {
  const go = (/** @type {string} */ path) => (location.assign(base + path), true);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const theme = document.documentElement.dataset.theme ?? 'system';
  const following = (/** @type {string[]} */ list, /** @type {string} */ now) => list[(list.indexOf(now) + 1) % list.length] ?? now;
  const zones = /** @type {HTMLSelectElement | null} */ (document.querySelector('select[name=zone]'));
  switch (pressed) {
    case '/': return byId('filter')?.focus(), true;
    case 'j': return moveRow(1), true;
    case 'k': return moveRow(-1), true;
    case 'gh': return go('/');
    case 'gn': return go('/nodes');
    case 'gs': return go('/store');
    case '?': return go('/help');
    case 'r': return switchMode(following(['live', '10s', 'off'], mode)), true;
    case 'z': return choose('zone', zones?.value === 'UTC' ? zone : 'UTC'), true;
    case 't': return choose('theme', following(['system', 'light', 'dark'], theme)), true;
    default: return target === body && pressed === 'g';
  }
}

// ---- The rest ----------------------------------------------------------------------------------------------------------------------

/** @param {HTMLElement} button */
async function copy(button) {
  const code = button.parentElement?.querySelector('code');
  if (!code) return;
  if (navigator.clipboard) await navigator.clipboard.writeText(code.textContent ?? '');
  else {
    // Plain HTTP has no clipboard: what is to be copied is selected.
    document.getSelection()?.selectAllChildren(code);
    document.execCommand('copy');
  }
  setText(button, words.copied);
}

/** @param {ParentNode} within */
function copies(within) {
  for (const button of all('button[data-copy]', within)) button.hidden = false;
}

function settings() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const select = /** @type {HTMLSelectElement | null} */ (document.querySelector('select[name=zone]'));
  if (select && zone && ![...select.options].some((option) => option.value === zone)) {
    select.add(new Option(fill(words.zone, cityOf(zone)), zone), 1);
  }
  const label = byId('letters');
  const box = label?.querySelector('input');
  if (!label || !box) return;
  label.hidden = false;
  box.checked = letters();
  box.addEventListener('change', () => localStorage.setItem(LETTERS, box.checked ? 'on' : 'off'));
}

/** @param {Event} event */
function titled(event) {
  const cell = event.target instanceof HTMLElement ? event.target.closest('td.c') : null;
  if (!(cell instanceof HTMLElement) || cell.title) return;
  const row = cell.parentElement;
  const head = row ? all('#grid thead th')[[...row.children].indexOf(cell)] : undefined;
  cell.title = `${row?.dataset.job} ${head?.dataset.hour}: ${cell.textContent}`;
}

document.addEventListener('keydown', key);
document.addEventListener('click', (event) => {
  const target = event.target instanceof HTMLElement ? event.target : null;
  const button = target?.closest('button[data-copy]');
  if (button instanceof HTMLElement) return void copy(button);
  if (target?.closest('#moved button')) return sort();
  const cell = target?.closest('#grid td.c');
  if (cell instanceof HTMLElement && document.getSelection()?.isCollapsed !== false) location.assign(addressOf(cell));
});
document.addEventListener('mouseover', titled);
document.addEventListener('focusin', titled);
document.addEventListener('focusin', stay);
document.addEventListener('visibilitychange', seen);
window.addEventListener('pagehide', disconnect);
window.addEventListener('pageshow', (event) => event.persisted && seen());

const grid = byId('grid');
if (grid) roam(grid);
copies(document);
settings();
tick();
window.setInterval(tick, 1_000);
if (body.dataset.live !== undefined && body.dataset.live !== '') {
  connect();
  window.setInterval(() => mode !== 'off' && void look(), LOOK);
  window.setInterval(show, 1_000);
  show();
}

// The page: asks the daemon, follows its events, and shows what the other modules make of it.
import {ask, askMap, askWhy, drill} from './api.js';
import {clean, find} from './dom.js';
import {coloursOf, drawMap} from './draw.js';
import {jobsOf} from './jobs.js';
import {cellAt, layoutOf, moved, nextBad} from './layout.js';
import {countsOf, modelOf, nicOf, rowsOf, withNode} from './model.js';
import {showNic} from './panel.js';
import {inTasks, later} from './schedule.js';
import {follow} from './stream.js';
import {KINDS} from './states.js';
import {clockOf, countdownOf} from './text.js';
import {SPAN_MS, timelineOf} from './timeline.js';
import {ownersOf, verdictOf} from './verdict.js';
import {setText, showEvents, showHeader, showJobs, showLegend, showList, showSaved, showTime} from './view.js';

const ROWS = 60;
const EVENTS_MAX = 4000;
// Beyond these the whole map costs less than one request for each.
const NODES_AT_ONCE = 8;
const GATHER_MS = 40;
const AGAIN_MS = 1000;
const REFRESH_MS = {map: 15000, rest: 5000, saved: 60000, time: 30000};

const state = {
  model: null,
  status: null,
  jobsReply: null,
  who: null,
  events: [],
  at: null,
  selected: '',
  find: '',
  why: null,
  whyError: '',
  message: '',
  shown: ROWS,
  layout: null,
  alive: true,
  heardMs: Date.now(),
  release: '',
};
const dirty = new Set();
let colours = coloursOf(document.body);

// ---- showing, each part in a task of its own ----

const parts = {
  header: showTop,
  map: showMap,
  list: showRows,
  nic: showPanel,
  time: showTimeline,
  jobs: () => showJobs(jobs()),
};
const show = inTasks((name) => {
  if (state.model !== null) parts[name]();
});

const jobs = () => (state.jobsReply === null ? [] : jobsOf(state.jobsReply, state.model));

function showTop() {
  const counts = countsOf(state.model);
  showHeader(verdictOf(state.model, jobs(), ownersOf(state.events)), counts, state.status, state.model.release);
  showLegend(counts);
}

function showMap() {
  state.layout = layoutOf(state.model, find('map').clientWidth - 4);
  if (state.at !== null && (state.at.node >= state.layout.nodes || state.at.rail >= state.layout.rails)) state.at = null;
  drawMap(find('canvas'), state.model, state.layout, colours, document.activeElement === find('map') ? state.at : null, state.selected);
  // For tests and for people with a console: what was drawn.
  find('canvas').setAttribute('data-failed', String(countsOf(state.model).kinds.failed));
  find('map').setAttribute('aria-rowcount', String(state.layout.nodes));
  find('map').setAttribute('aria-colcount', String(state.layout.rails));
  showCell();
}

function nicAt(at) {
  return at === null ? null : (state.model.nodes.get(state.model.order[at.node])?.cells[at.rail] ?? null);
}

function textOf(at) {
  const nic = nicAt(at);
  if (nic === null) return at === null ? '' : `${state.model.order[at.node]}: no ${state.model.rails[at.rail]}`;
  return `${nic.key}: ${KINDS[nic.kind].word}${nic.isDrill ? ' (drill)' : ''}${nic.reason === '' ? '' : `, ${nic.reason}`}`;
}

function showCell() {
  const at = state.at ?? {node: 0, rail: 0};
  const cell = find('map-cell');
  find('map-row').setAttribute('aria-rowindex', String(at.node + 1));
  cell.setAttribute('aria-colindex', String(at.rail + 1));
  const text = clean(state.layout.nodes === 0 ? 'no nodes' : textOf(at));
  setText(cell, text);
  if (state.at !== null) setText(find('at'), text);
}

function showRows() {
  showList(rowsOf(state.model, state.find, ''), state.shown, state.selected, state.find !== '', select, () => {
    state.shown += ROWS;
    show('list');
  });
}

function showPanel() {
  const section = find('nic');
  const nic = state.selected === '' ? null : nicOf(state.model, state.selected);
  // Text that a person types stays.
  if (nic !== null && section.contains(document.activeElement) && document.activeElement.tagName === 'INPUT') return;
  section.hidden = nic === null;
  if (nic === null) return;
  showNic(
    section,
    {nic, why: state.why, error: state.whyError, model: state.model, who: state.who, message: state.message, nowMs: Date.now()},
    act,
    () => select(''),
  );
}

function showTimeline() {
  showTime(
    timelineOf(state.events, Date.now(), (key) => nicOf(state.model, key)?.kind ?? null),
    select,
  );
  showEvents(state.events);
}

function showLife(why) {
  const gone = find('gone');
  gone.hidden = state.alive && state.release === '';
  document.body.toggleAttribute('data-gone', !state.alive);
  if (!state.alive)
    setText(gone, clean(`This page is out of date: r2ccd does not answer since ${clockOf(state.heardMs, true)} (${why}). It tries again.`));
  else if (state.release !== '') setText(gone, clean(`r2ccd is now ${state.release}: load this page again.`));
}

// ---- asking ----

async function asking(work) {
  try {
    await work();
    state.heardMs = Date.now();
  } catch (error) {
    // The stream shows whether the daemon runs; a refusal is shown as it is.
    if (error.status === 401 || error.status === 403) {
      setText(find('answer'), `Not known: ${clean(error.message)}`);
    }
  }
}

function take(model) {
  if (state.model !== null && state.model.release !== model.release) {
    state.release = model.release;
    showLife('');
  }
  state.model = model;
  show('header', 'map', 'list', 'nic');
}

let refreshing = false,
  again = false;
const refresh = later(async () => {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  await asking(async () => {
    const nodes = [...dirty];
    dirty.clear();
    if (state.model === null || nodes.length === 0 || nodes.length > NODES_AT_ONCE) take(modelOf(await askMap()));
    else for (const node of nodes) take(withNode(state.model, node, await askMap(node)));
  });
  refreshing = false;
  // Nothing is shown yet: the daemon may have just started.
  if (state.model === null) setTimeout(refresh, AGAIN_MS);
  if (again) {
    again = false;
    refresh();
  }
}, GATHER_MS);

async function refreshRest() {
  await asking(async () => {
    state.jobsReply = await ask('/api/v1/jobs');
  });
  await asking(async () => {
    if (state.model !== null) state.status = await ask(`/api/v1/status?${new URLSearchParams({node: state.model.own})}`);
  });
  show('jobs', 'header');
}

async function refreshWhy() {
  const key = state.selected;
  if (key === '') return;
  const at = key.indexOf('/');
  let why = null,
    text = '';
  try {
    why = await askWhy(key.slice(0, at), key.slice(at + 1));
  } catch (error) {
    text = error.message;
  }
  if (key !== state.selected) return;
  state.why = why;
  state.whyError = text;
  show('nic');
}
const whySoon = later(refreshWhy, 200);

async function act(action, nic, typed, seconds) {
  try {
    await drill(action, nic.node, nic.name, typed, seconds);
    state.message = action === 'fail' ? `The drill of ${nic.key} began.` : `The drill of ${nic.key} ended.`;
  } catch (error) {
    state.message = error.message;
  }
  document.activeElement?.blur();
  dirty.add(nic.node);
  refresh();
  show('nic');
}

// ---- what a person does ----

function writeHash() {
  const values = new URLSearchParams();
  if (state.selected !== '') values.set('nic', state.selected);
  if (state.find !== '') values.set('find', state.find);
  history.replaceState(null, '', values.size > 0 ? `#${values}` : location.pathname);
}

let opener = null;
function select(key) {
  if (key === state.selected && key !== '') return;
  if (key !== '' && state.selected === '') opener = document.activeElement;
  Object.assign(state, {selected: key, why: null, whyError: '', message: ''});
  writeHash();
  refreshWhy();
  if (state.model === null) return;
  showPanel();
  if (key !== '') find('nic').focus({preventScroll: matchMedia('(min-width: 1100px)').matches});
  else opener?.isConnected ? opener.focus() : find('map').focus();
  show('map', 'list');
}

function readHash() {
  const values = new URLSearchParams(location.hash.slice(1));
  state.find = values.get('find') ?? '';
  find('find').value = state.find;
  select(values.get('nic') ?? '');
  show('list');
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || state.model === null || state.layout?.nodes === 0) return;
  const at = state.at ?? {node: 0, rail: 0};
  const to =
    event.key === 'n' || event.key === 'p'
      ? (nextBad(state.model, at, event.key === 'n' ? 1 : -1) ?? at)
      : moved(state.layout, at, event.key);
  if (to !== null) {
    state.at = to;
    show('map');
  } else if ((event.key === 'Enter' || event.key === ' ') && nicAt(at) !== null) {
    select(nicAt(at).key);
  } else {
    return;
  }
  event.preventDefault();
}

function listen() {
  const map = find('map'),
    canvas = find('canvas');
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return state.layout === null ? null : cellAt(state.layout, event.clientX - box.left, event.clientY - box.top);
  };
  map.addEventListener('keydown', onKey);
  map.addEventListener('focus', () => show('map'));
  map.addEventListener('blur', () => show('map'));
  canvas.addEventListener('mousemove', (event) => {
    const at = place(event);
    if (at !== null) setText(find('at'), clean(textOf(at)));
  });
  canvas.addEventListener('click', (event) => {
    const at = place(event);
    if (at === null || nicAt(at) === null) return;
    state.at = at;
    select(nicAt(at).key);
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && state.selected !== '') select('');
  });
  find('find').addEventListener('input', (event) => {
    Object.assign(state, {find: event.target.value, shown: ROWS});
    writeHash();
    show('list');
  });
  addEventListener('hashchange', readHash);
  new ResizeObserver(() => show('map')).observe(map);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    colours = coloursOf(document.body);
    show('map');
  });
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) {
      refresh();
      refreshRest();
    }
  });
}

// ---- all together ----

const timelineSoon = later(() => show('time', 'header'), 250);
function onEvents(events) {
  state.events.push(...events);
  if (state.events.length > EVENTS_MAX) state.events.splice(0, state.events.length - EVENTS_MAX);
  for (const event of events) {
    if (event.node) dirty.add(event.node);
    if (`${event.node}/${event.nic}` === state.selected) whySoon();
  }
  state.heardMs = Date.now();
  refresh();
  timelineSoon();
}

function onLife(alive, why) {
  if (alive && !state.alive) {
    refresh();
    refreshRest();
  }
  state.alive = alive;
  if (alive) state.heardMs = Date.now();
  showLife(why);
}

async function refreshSaved() {
  try {
    showSaved((await ask('/api/v1/status')).saved ?? []);
  } catch {
    find('saved-section').hidden = true;
  }
}

const unlessHidden = (work) => () => {
  if (!document.hidden) work();
};

listen();
readHash();
refresh();
asking(async () => {
  state.who = await ask('/api/v1/who');
  show('nic');
});
setTimeout(refreshRest, GATHER_MS);
refreshSaved();
const kinds = [
  'nic-state',
  'failover',
  'operation-held',
  'job-gave-up',
  'operator',
  'daemon-started',
  'peer-lost',
  'peer-connected',
  'drill',
  'link-up',
  'node-forgotten',
  'state',
  'fabric',
];
follow(
  `/api/v1/events?last=${EVENTS_MAX}&since_ns=${BigInt(Date.now() - SPAN_MS) * 1000000n}&${kinds.map((kind) => `kind=${kind}`).join('&')}`,
  onEvents,
  onLife,
);
setInterval(refresh, REFRESH_MS.map); // a hidden tab, too: its title shows whether to get up
setInterval(unlessHidden(refreshRest), REFRESH_MS.rest);
setInterval(unlessHidden(refreshSaved), REFRESH_MS.saved);
setInterval(
  unlessHidden(() => show('time', 'list')),
  REFRESH_MS.time,
);
setInterval(() => {
  for (const one of document.querySelectorAll('[data-ends]')) setText(one, countdownOf(Number(one.getAttribute('data-ends')) - Date.now()));
}, 1000);

// 24 hours of events as lanes: one for each NIC that changed its state, and one for each kind of mark. Pure.
import {KINDS, kindOf} from './states.js';

export const SPAN_MS = 24 * 3600 * 1000;
const LANES_MAX = 12;

const kindOfState = (state) => kindOf({state, operator_weight_permille: 1000, drained_jobs: []}, '');
const isQuiet = (kind) => kind === 'healthy' || kind === 'unknown';

const MARKS = {
  failover: 'Failovers of jobs',
  'operation-held': 'Collectives that waited',
  'job-gave-up': 'Jobs gave up',
  operator: 'Operators',
  'daemon-started': 'r2ccd starts',
  'peer-lost': 'Peers lost',
};

// `current`(key): the kind of NODE/NIC now, or null. The lanes of the worst NICs come first, among these those of the latest change.
export function timelineOf(events, nowMs, current) {
  const from = nowMs - SPAN_MS;
  const nics = new Map(),
    marks = new Map();
  const starts = [];
  for (const event of events) {
    const at = Number(event.time_ns) / 1e6;
    if (at < from) continue;
    if (event.kind === 'daemon-started') starts.push(at);
    if (event.kind === 'nic-state') {
      const key = `${event.node}/${event.nic}`;
      if (!nics.has(key)) nics.set(key, [{from, kind: kindOfState(event.from_state), text: ''}]);
      nics.get(key).push({from: at, kind: kindOfState(event.to_state), text: event.message});
    } else if (event.kind in MARKS) {
      if (!marks.has(event.kind)) marks.set(event.kind, []);
      marks.get(event.kind).push({at, text: event.message});
    }
  }
  const lanes = [...nics]
    .map(([key, changes]) => {
      const bars = [];
      changes.forEach((change, i) => {
        let to = changes[i + 1]?.from ?? nowMs;
        // What happened while the daemon did not run is no event: the last state ends where the next run of the daemon begins.
        if (i === changes.length - 1 && current(key) !== null && current(key) !== change.kind)
          to = starts.findLast((at) => at > change.from) ?? to;
        if (!isQuiet(change.kind) && to > change.from) bars.push({from: change.from, to, kind: change.kind, text: change.text});
      });
      return {key, bars, changes: changes.length - 1, last: changes.at(-1).from, rank: KINDS[current(key) ?? changes.at(-1).kind].rank};
    })
    .sort((a, b) => a.rank - b.rank || b.last - a.last);
  return {
    from,
    to: nowMs,
    lanes: lanes.slice(0, LANES_MAX),
    more: Math.max(0, lanes.length - LANES_MAX),
    marks: Object.keys(MARKS)
      .filter((kind) => marks.has(kind))
      .map((kind) => ({kind, name: MARKS[kind], at: marks.get(kind)})),
  };
}

// Marks that would cover each other are one: {at, count, text} with `at` as part of the span.
export function clustered(marks, from, to, least = 0.004) {
  const shown = [];
  for (const mark of marks) {
    const at = (mark.at - from) / (to - from);
    const before = shown.at(-1);
    if (before && at - before.at < least) {
      ++before.count;
      before.text = mark.text;
    } else shown.push({at, count: 1, text: mark.text});
  }
  return shown;
}

// The page's pure parts, by node's test runner. page_test.py starts it.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {heldText, jobsOf} from './jobs.js';
import {pageOf} from './links.js';
import {cellAt, layoutOf, moved, nextBad, placeOf} from './layout.js';
import {countsOf, fewestRails, modelOf, nicOf, rowsOf, withNode} from './model.js';
import {KINDS, glyphOf, kindOf} from './states.js';
import {framesOf} from './stream.js';
import {bytesOf, countdownOf, countOf, spanOf} from './text.js';
import {clustered, SPAN_MS, timelineOf} from './timeline.js';
import {ownersOf, verdictOf} from './verdict.js';

const bad = (name, state, more = {}) => ({
  name,
  state,
  reason: `${name} is ${state}`,
  since_ns: '5000000',
  operator_weight_permille: 1000,
  drained: false,
  drill_failed: false,
  drill_ends_ns: '0',
  drained_jobs: [],
  ...more,
});
const node = (name, healthy, nics = [], word = 'NODE_HEALTHY') => ({node: name, word, healthy, nics});
const map = (...nodes) => ({node: 'n1', release: '0.3.0', nodes});
const four = ['r0', 'r1', 'r2', 'r3'];
const verdict = (model, jobs = [], owners = new Map()) => verdictOf(model, jobs, owners);

test('a state is readable without its colour: each kind has a word, and all but healthy a glyph of its own', () => {
  const kinds = Object.keys(KINDS);
  assert.equal(new Set(kinds.map((kind) => KINDS[kind].word)).size, kinds.length);
  assert.equal(new Set(kinds.map((kind) => JSON.stringify(glyphOf(kind)))).size, kinds.length);
  assert.deepEqual(
    kinds.filter((kind) => glyphOf(kind).length === 0),
    ['healthy'],
  );
});

test('the kind of a NIC', () => {
  for (const [state, kind] of [
    ['FAILED', 'failed'],
    ['HEALTHY', 'healthy'],
    ['PROVING', 'proving'],
    ['UNCABLED', 'uncabled'],
    ['NEW_STATE', 'unknown'],
  ])
    assert.equal(kindOf(bad('r0', state), 'NODE_HEALTHY'), kind);
  assert.equal(kindOf(bad('r0', 'HEALTHY'), 'NODE_UNREACHABLE'), 'unreachable');
  assert.equal(kindOf(bad('r0', 'FAILED'), 'NODE_UNREACHABLE'), 'failed');
  assert.equal(kindOf(bad('r0', 'HEALTHY', {operator_weight_permille: 500}), 'NODE_HEALTHY'), 'weighted');
  assert.equal(kindOf(bad('r0', 'HEALTHY', {drained_jobs: ['train']}), 'NODE_HEALTHY'), 'weighted');
});

test('a model has its nodes and rails in natural order', () => {
  const model = modelOf(map(node('n10', ['r10', 'r2']), node('n2', ['r2'], [bad('r10', 'FAILED')])));
  assert.deepEqual(model.order, ['n2', 'n10']);
  assert.deepEqual(model.rails, ['r2', 'r10']);
  assert.equal(model.nodes.get('n2').cells[1].kind, 'failed');
  assert.equal(nicOf(model, 'n2/r10').reason, 'r10 is FAILED');
  assert.equal(nicOf(model, 'n3/r10'), null);
});

test('one node changes, comes and goes', () => {
  const before = modelOf(map(node('n1', four), node('n2', four)));
  const after = withNode(before, 'n2', map(node('n2', ['r0', 'r1', 'r3'], [bad('r2', 'FAILED')])));
  assert.equal(countsOf(after).kinds.failed, 1);
  assert.equal(countsOf(before).kinds.failed, 0);
  assert.deepEqual(withNode(after, 'n2', map()).order, ['n1']);
  assert.deepEqual(withNode(after, 'n3', map(node('n3', four))).order, ['n1', 'n2', 'n3']);
  // A glob in a name may bring other nodes, which are not this one.
  assert.deepEqual(withNode(before, 'n*', map(node('n1', four), node('n2', four))).order, ['n1', 'n2']);
});

test('names of NICs that are all different are columns by their place', () => {
  const nodes = Array.from({length: 20}, (_, i) => node(`n${i}`, [`a${i}`, `b${i}`]));
  const model = modelOf(map(...nodes));
  assert.deepEqual(model.rails, ['NIC 1', 'NIC 2']);
  assert.equal(model.nodes.get('n7').cells[1].name, 'b7');
});

test('the list is red first, and one row for a node that is dead', () => {
  const model = modelOf(
    map(
      node('n1', ['r1'], [bad('r0', 'DEGRADED')]),
      node(
        'n2',
        [],
        four.map((name) => bad(name, 'FAILED', {reason: 'dead'})),
      ),
    ),
  );
  const rows = rowsOf(model, '', '');
  assert.deepEqual(
    rows.map(({nic, count}) => [nic.key, count]),
    [
      ['n2/r0', 4],
      ['n1/r0', 1],
    ],
  );
  assert.deepEqual(
    rowsOf(model, 'N1', '').map(({nic}) => nic.key),
    ['n1/r0', 'n1/r1'],
  );
  assert.deepEqual(
    rowsOf(model, 'DEAD', '').map(({count}) => count),
    [4],
  );
});

test('must I get up: no, not now, yes', () => {
  assert.equal(verdict(modelOf(map(node('n1', four)))).answer, 'No: all 4 NICs on 1 node are well.');
  const later = verdict(modelOf(map(node('n1', ['r0', 'r1', 'r2'], [bad('r3', 'FAILED')]))));
  assert.equal(later.level, 'later');
  assert.deepEqual(later.details, ['Fewest rails left: 3 of 4 on n1.', 'No operator has acted on it yet.']);
  const yes = verdict(modelOf(map(node('n1', ['r0'], [bad('r1', 'FAILED'), bad('r2', 'FAILED'), bad('r3', 'DRAINED', {drained: true})]))));
  assert.equal(yes.answer, 'Yes: 1 node with at most one rail left.');
  assert.equal(verdict(modelOf(map())).level, 'later');
  // The daemon alone is away: traffic goes on.
  assert.equal(verdict(modelOf(map(node('n1', four, [], 'NODE_UNREACHABLE')))).level, 'later');
  const drill = verdict(modelOf(map(node('n1', ['r0', 'r1', 'r2'], [bad('r3', 'FAILED', {drill_failed: true})]))));
  assert.equal(drill.answer, 'Not now: 1 NIC in a drill, and no job is at risk.');
});

test('a job without progress is a reason to get up, and one with one rail left', () => {
  const model = modelOf(map(node('n1', four)));
  const job = {name: 'train', stands: false, atRisk: false};
  assert.match(verdict(model, [{...job, stands: true}]).answer, /^Yes: 1 job of this node makes no progress \(train\)\.$/);
  assert.match(verdict(model, [{...job, atRisk: true}]).answer, /^Yes: 1 job of this node at risk/);
  assert.equal(verdict(model, [job]).level, 'no');
});

test('who has it: the last action of an operator that was not refused', () => {
  const action = (time, target, what, refused = false) => ({
    kind: 'operator',
    time_ns: String(time),
    audit: {action: what, target, who: `alice ${time}`, refused},
  });
  const owners = ownersOf([
    action(1e6, 'n1/r3', 'drain'),
    action(2e6, 'n1/r3', 'weight'),
    action(3e6, 'n1/r3', 'drain', true),
    {kind: 'operator'},
  ]);
  assert.equal(owners.get('n1/r3').who, 'alice 2000000');
  const details = verdict(modelOf(map(node('n1', ['r0', 'r1'], [bad('r2', 'FAILED'), bad('r3', 'FAILED')]))), [], owners).details;
  assert.match(details.at(-1), /^alice 2000000: weight of n1\/r3 at .*; nobody has acted on the other 1 NIC\.$/);
});

test('fewest rails: a port without a cable is none', () => {
  assert.equal(fewestRails(modelOf(map(node('n1', ['r0'], [bad('r1', 'UNCABLED')])))), null);
  const worst = fewestRails(modelOf(map(node('n1', ['r0', 'r1'], [bad('r2', 'FAILED')]), node('n2', ['r0'], [bad('r1', 'FAILED')]))));
  assert.deepEqual(worst, {node: 'n2', left: 1, rails: 2, last: 1});
});

const process = (more = {}) => ({
  job: 'train',
  run: '7',
  uid: 1,
  pid: 9,
  peer_nodes: ['n2'],
  gave_up: [],
  faults: [],
  faults_untold: 0,
  rails: four.map((nic) => ({nic, replayed_bytes: '10'})),
  ...more,
});

test('processes of a run are one job, with its stalls and replayed bytes', () => {
  const model = modelOf(map(node('n1', ['r0'], [bad('r1', 'FAILED'), bad('r2', 'FAILED'), bad('r3', 'DEGRADED')])));
  const fault = {stall_ns: '7000000', open_links: 0};
  const [job] = jobsOf(
    {jobs: [process({faults: [fault]}), process({pid: 10, peer_nodes: ['n2', 'n3'], faults: [{...fault, stall_ns: '9000000'}]})]},
    model,
  );
  assert.deepEqual(
    [job.processes, job.peers, job.left, job.rails, job.faults, job.longestMs, job.stallMs, job.replayed],
    [2, 2, 2, 4, 2, 9, 16, 80],
  );
  assert.equal(job.stands, false);
  assert.equal(job.atRisk, false);
  assert.equal(jobsOf({jobs: [process({faults: [{...fault, open_links: 2}]})]}, model)[0].stands, true);
  assert.equal(jobsOf({jobs: [process(), process({uid: 2})]}, model).length, 2);
});

test('the page of another node is at its name, in the domain by which this page was opened', () => {
  const at = (url) => pageOf(new URL(url), 'n1', 'n2', 'rail0');
  assert.equal(at('https://n1:9460/'), 'https://n2:9460/#nic=n2%2Frail0');
  assert.equal(at('https://N1.lab.example:9460/'), 'https://n2.lab.example:9460/#nic=n2%2Frail0');
  assert.equal(at('https://10.0.0.1:9460/'), 'https://n2:9460/#nic=n2%2Frail0');
  assert.equal(at('https://n10.lab.example/'), 'https://n2/#nic=n2%2Frail0');
  for (const hostile of ['evil.com', 'evil.com/x', 'a@evil.com', 'a:1', 'n 2', '', 'javascript:alert(1)', '-n2'])
    assert.equal(pageOf(new URL('https://n1:9460/'), 'n1', hostile, 'rail0'), null);
});

test('a job names the operation that waited longest, and a daemon of another release may name none', () => {
  const model = modelOf(map(node('n1', four)));
  const held = {function: 'AllReduce', number: 12, communicator: '255', communicator_name: 'tp0', rank: 3, ranks: 8, held_ns: '280000000'};
  const fault = {stall_ns: '7000000', open_links: 0, nic: 'r1'};
  const short = {...held, number: 13, held_ns: '1000000'};
  const faults = [fault, {...fault, held: [short]}, {...fault, nic: 'r2', held: [held, short]}];
  const [job] = jobsOf({jobs: [process({faults})]}, model);
  assert.equal(heldText(job.held), 'AllReduce 12 of tp0 (rank 3 of 8) waited for r2');
  assert.equal(job.held.ms, 280);
  const bare = {function: 'Send to 3', number: 0, communicator: '255', communicator_name: '', rank: 0, ranks: 0, nic: 'r1'};
  assert.equal(heldText(bare), 'Send to 3 of ff (rank 0) waited for r1');
  assert.equal(jobsOf({jobs: [process({faults: [fault]})]}, model)[0].held, null);
});

test('1,000 nodes of 8 rails fit on a screen, and each cell is found where it is drawn', () => {
  const eight = Array.from({length: 8}, (_, i) => `r${i}`);
  for (const [nodes, width] of [
    [1, 300],
    [13, 500],
    [64, 800],
    [1000, 830],
    [1000, 380],
    [0, 500],
  ]) {
    const model = modelOf(map(...Array.from({length: nodes}, (_, i) => node(`node${i}`, eight))));
    const layout = layoutOf(model, width);
    for (const at of [
      {node: 0, rail: 0},
      {node: nodes - 1, rail: 7},
      {node: Math.floor(nodes / 2), rail: 3},
    ]) {
      if (nodes === 0) continue;
      const {x, y} = placeOf(layout, at.node, at.rail);
      assert.deepEqual(cellAt(layout, x + 1, y + 1), at);
    }
    assert.equal(cellAt(layout, 5, -50), null);
    if (width >= 800) assert.ok(layout.height <= 700 && layout.columns * layout.columnWidth <= width + 20, JSON.stringify(layout));
  }
});

test('keys move within the map and never out of it', () => {
  const model = modelOf(
    map(...Array.from({length: 40}, (_, i) => node(`n${i}`, i === 30 ? ['r0', 'r1', 'r2'] : four, i === 30 ? [bad('r3', 'FAILED')] : []))),
  );
  const layout = layoutOf(model, 700);
  assert.deepEqual(moved(layout, {node: 0, rail: 0}, 'ArrowUp'), {node: 0, rail: 0});
  assert.deepEqual(moved(layout, {node: 0, rail: 0}, 'ArrowDown'), {node: 1, rail: 0});
  assert.deepEqual(moved(layout, {node: 0, rail: 3}, 'ArrowRight'), {node: layout.rows, rail: 0});
  assert.deepEqual(moved(layout, {node: layout.rows, rail: 0}, 'ArrowLeft'), {node: 0, rail: 3});
  assert.deepEqual(moved(layout, {node: 39, rail: 3}, 'PageDown'), {node: 39, rail: 3});
  assert.equal(moved(layout, {node: 0, rail: 0}, 'x'), null);
  assert.deepEqual(nextBad(model, {node: 0, rail: 0}, 1), {node: 30, rail: 3});
  assert.deepEqual(nextBad(model, {node: 30, rail: 3}, -1), {node: 30, rail: 3});
  assert.equal(nextBad(modelOf(map(node('n1', four))), {node: 0, rail: 0}, 1), null);
});

test('server-sent events in any pieces', () => {
  const text = ': r2ccd lives\n\nid: 1-2\ndata: {"a":1}\n\nid: 1-3\ndata: {"b":2}\n\nid: 1-4\nda';
  for (let cut = 0; cut <= text.length; ++cut) {
    const first = framesOf(text.slice(0, cut));
    const second = framesOf(first.rest + text.slice(cut));
    assert.deepEqual(
      [...first.frames, ...second.frames],
      [
        {id: '1-2', data: '{"a":1}'},
        {id: '1-3', data: '{"b":2}'},
      ],
    );
    assert.equal(second.rest, 'id: 1-4\nda');
  }
});

const change = (atMs, key, from, to) => ({
  kind: 'nic-state',
  time_ns: String(atMs * 1e6),
  node: key.split('/')[0],
  nic: key.split('/')[1],
  from_state: from,
  to_state: to,
  message: 'why',
});

test('a time line has a bar from each change to the next', () => {
  const now = 10 * SPAN_MS;
  const events = [
    change(now - 2 * SPAN_MS, 'n9/r0', 'HEALTHY', 'FAILED'),
    change(now - 5000, 'n1/r0', 'HEALTHY', 'FAILED'),
    change(now - 3000, 'n1/r0', 'FAILED', 'PROVING'),
    change(now - 2000, 'n1/r0', 'PROVING', 'HEALTHY'),
    change(now - 4000, 'n2/r0', 'HEALTHY', 'FAILED'),
  ];
  const time = timelineOf(events, now, (key) => (key === 'n2/r0' ? 'failed' : 'healthy'));
  assert.deepEqual(
    time.lanes.map((lane) => lane.key),
    ['n2/r0', 'n1/r0'],
    'what is bad now comes first; what is older than a day is left out',
  );
  assert.deepEqual(
    time.lanes[1].bars.map(({from, to, kind}) => [now - from, now - to, kind]),
    [
      [5000, 3000, 'failed'],
      [3000, 2000, 'proving'],
    ],
  );
  assert.deepEqual(
    time.lanes[0].bars.map(({from, to}) => [now - from, now - to]),
    [[4000, 0]],
  );
});

test('a state that ended while the daemon did not run ends at its next start', () => {
  const now = 10 * SPAN_MS;
  const events = [
    change(now - 5000, 'n1/r0', 'HEALTHY', 'FAILED'),
    {kind: 'daemon-started', time_ns: String((now - 1000) * 1e6), message: ''},
  ];
  const [bar] = timelineOf(events, now, () => 'healthy').lanes[0].bars;
  assert.equal(now - bar.to, 1000);
});

test('marks that would cover each other are one', () => {
  const marks = clustered(
    [
      {at: 0, text: 'a'},
      {at: 1, text: 'b'},
      {at: 900, text: 'c'},
    ],
    0,
    1000,
  );
  assert.deepEqual(marks, [
    {at: 0, count: 2, text: 'b'},
    {at: 0.9, count: 1, text: 'c'},
  ]);
});

test('numbers as text', () => {
  assert.equal(countOf(1, 'NIC'), '1 NIC');
  assert.equal(countOf(8000, 'NIC'), '8,000 NICs');
  assert.equal(bytesOf(1536), '1.5 KiB');
  assert.equal(spanOf(0.25), '0.25 ms');
  assert.equal(spanOf(61000), '61 s');
  assert.equal(countdownOf(299001), '5:00');
  assert.equal(countdownOf(-5), '0:00');
});

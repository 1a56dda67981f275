// The parts of the page that are lists and tables.
import {clean, find, glyph, h, replace, s} from './dom.js';
import {heldText} from './jobs.js';
import {KINDS, glyphOf} from './states.js';
import {clustered} from './timeline.js';
import {bytesOf, clockOf, countOf, numberOf, spanOf, whenOf} from './text.js';

// Sets a text if it is another one, so that nothing is read out again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function showHeader(verdict, counts, status, release) {
  const answer = find('answer');
  answer.setAttribute('data-level', verdict.level);
  setText(answer, clean(verdict.answer));
  setText(find('details'), clean(verdict.details.join(' ')));
  const bad = Object.entries(KINDS)
    .filter(([kind]) => kind !== 'healthy' && counts.kinds[kind] > 0)
    .map(([kind, {word}]) => `${counts.kinds[kind]} ${word}`);
  const parts = [
    `${numberOf(counts.healthyNodes)} of ${countOf(counts.nodes, 'node')} healthy`,
    bad.length > 0 ? `NICs: ${bad.join(', ')}` : 'all NICs healthy',
    `capacity ${(100 * counts.capacity).toFixed(1)} %`,
  ];
  if (counts.drills > 0) parts.push(countOf(counts.drills, 'drill'));
  if (status)
    parts.push(
      `plan ${status.plan_epoch?.counter ?? '0'}`,
      `r2ccd ${release} of ${status.node}${status.insecure ? ', insecure' : ''}`,
      `store: ${status.store}`,
    );
  setText(find('summary'), clean(parts.join('; ')));
  document.title = `${verdict.level === 'yes' ? '(!) ' : ''}R2CC: ${verdict.answer.split(':')[0].replace(/\.$/, '')}`;
  const alarms = status?.alarms ?? [];
  find('alarms').hidden = alarms.length === 0;
  replace(
    find('alarms'),
    alarms.map((alarm) => h('li', {}, clean(alarm))),
  );
}

export function showLegend(counts) {
  replace(
    find('legend'),
    Object.entries(KINDS)
      .filter(([kind]) => counts.kinds[kind] > 0)
      .map(([kind, {word}]) => h('li', {}, glyph(kind), `${word} ${numberOf(counts.kinds[kind])}`)),
  );
}

export function showList(rows, shown, selected, isFiltered, select, more) {
  const nowMs = Date.now();
  setText(
    find('list-title'),
    `${isFiltered ? 'Found' : 'Not healthy'}: ${countOf(
      rows.reduce((all, row) => all + row.count, 0),
      'NIC',
    )}`,
  );
  replace(
    find('list').tBodies[0],
    rows
      .slice(0, shown)
      .map(({nic, count}) =>
        h(
          'tr',
          {class: nic.key === selected ? 'selected' : null},
          h('td', {}, glyph(nic.kind), KINDS[nic.kind].word + (nic.isDrill ? ' (drill)' : '')),
          h(
            'td',
            {},
            h('button', {class: 'link', 'data-focus': nic.key, onclick: () => select(nic.key)}, clean(nic.key)),
            count > 1 ? ` and ${count - 1} more of it` : null,
          ),
          h('td', {title: whenOf(nic.sinceMs, nowMs)}, nic.sinceMs > 0 ? spanOf(Math.max(0, nowMs - nic.sinceMs)) : ''),
          h('td', {}, clean(nic.reason)),
        ),
      ),
  );
  find('list').hidden = rows.length === 0;
  replace(
    find('list-rest'),
    rows.length === 0
      ? isFiltered
        ? 'Nothing fits.'
        : 'Nothing: all NICs are healthy.'
      : rows.length > shown
        ? h('button', {'data-focus': 'more', onclick: more}, `Show more of ${numberOf(rows.length)}`)
        : '',
  );
}

function lane(name, marks) {
  return h(
    'div',
    {class: 'lane'},
    name,
    s('svg', {viewBox: '0 0 1000 18', preserveAspectRatio: 'none', role: 'img', 'aria-label': marks.label}, marks.drawn),
  );
}

function bars(one, time) {
  const x = (at) => (1000 * (at - time.from)) / (time.to - time.from);
  return one.bars.map((bar) => {
    const width = Math.max(4, x(bar.to) - x(bar.from)),
      left = Math.min(x(bar.from), 1000 - width);
    // The glyph once, at the left, so that the bar is readable without its colour.
    const strokes = glyphOf(bar.kind)
      .filter((stroke) => stroke.length === 4)
      .map((stroke) => s('path', {d: `M${left + stroke[0] * 8} ${3 + stroke[1] * 12}L${left + stroke[2] * 8} ${3 + stroke[3] * 12}`}));
    return s(
      'g',
      {'data-kind': bar.kind},
      s(
        'rect',
        {x: left, y: 2, width, height: 14},
        s('title', {}, `${KINDS[bar.kind].word} ${clockOf(bar.from)} to ${clockOf(bar.to)}: ${clean(bar.text)}`),
      ),
      width > 10 ? strokes : null,
    );
  });
}

export function showTime(time, select) {
  const lanes = time.lanes.map((one) =>
    lane(h('button', {class: 'link', 'data-focus': one.key, onclick: () => select(one.key)}, clean(one.key)), {
      label:
        `${clean(one.key)}: ${countOf(one.changes, 'change')}, ` +
        (one.bars
          .map((bar) => `${KINDS[bar.kind].word} ${clockOf(bar.from)} to ${clockOf(bar.to)}`)
          .slice(-5)
          .join(', ') || 'healthy'),
      drawn: bars(one, time),
    }),
  );
  const marks = time.marks.map((row) =>
    lane(h('span', {}, `${row.name} (${numberOf(row.at.length)})`), {
      label: `${row.name}: ${row.at.length}`,
      drawn: clustered(row.at, time.from, time.to).map((mark) =>
        s(
          'path',
          {class: 'mark', d: `M${1000 * mark.at} 2V16`},
          s(
            'title',
            {},
            `${clockOf(time.from + mark.at * (time.to - time.from))} ` +
              `${mark.count > 1 ? `${mark.count} events, the last: ` : ''}${clean(mark.text)}`,
          ),
        ),
      ),
    }),
  );
  const hours = [0, 6, 12, 18, 24].map((hour) => h('span', {}, hour === 24 ? 'now' : clockOf(time.from + hour * 3600000)));
  replace(
    find('time'),
    lanes.length + marks.length === 0
      ? h('p', {class: 'muted'}, 'Nothing happened.')
      : [
          lanes,
          marks,
          h('div', {class: 'lane'}, h('span', {}), h('div', {class: 'axis'}, hours)),
          time.more > 0 ? h('p', {class: 'muted'}, `${countOf(time.more, 'NIC')} more changed.`) : null,
        ],
  );
}

export function showEvents(events) {
  const nowMs = Date.now();
  replace(
    find('events'),
    events
      .slice(-100)
      .reverse()
      .map((event) =>
        h(
          'li',
          {},
          `${whenOf(Number(event.time_ns) / 1e6, nowMs)} ${event.kind} `,
          clean([event.node && event.nic ? `${event.node}/${event.nic}` : event.node, event.message].filter(Boolean).join(': ')),
        ),
      ),
  );
}

export function showJobs(jobs) {
  if (jobs.length === 0) return replace(find('jobs'), h('p', {class: 'muted'}, 'No job is attached.'));
  const number = (text) => h('td', {class: 'number'}, text);
  const titles = ['Job', 'State', 'Processes', 'Peers', 'Rails', 'Faults', 'Longest stall', 'Replayed'];
  return replace(
    find('jobs'),
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          titles.map((title, i) => h('th', {scope: 'col', class: i > 1 ? 'number' : null}, title)),
        ),
      ),
      h(
        'tbody',
        {},
        jobs
          .slice(0, 50)
          .map((job) =>
            h(
              'tr',
              {},
              h(
                'td',
                {},
                clean(job.run === '' ? job.name : `${job.name} (${job.run})`),
                job.held ? h('div', {class: 'muted'}, clean(`${heldText(job.held)}, ${spanOf(job.held.ms)}`)) : null,
              ),
              h(
                'td',
                {},
                job.stands
                  ? [glyph('failed'), job.gaveUp > 0 ? 'gave up a peer' : 'no progress']
                  : job.atRisk
                    ? [glyph('suspect'), 'at risk']
                    : job.left < job.rails
                      ? [glyph('degraded'), 'fewer rails']
                      : [glyph('healthy'), 'runs'],
              ),
              number(numberOf(job.processes)),
              number(numberOf(job.peers)),
              number(`${job.left} of ${job.rails}`),
              number(numberOf(job.faults)),
              number(job.faults > 0 ? spanOf(job.longestMs) : ''),
              number(job.replayed > 0 ? bytesOf(job.replayed) : ''),
            ),
          ),
      ),
    ),
  );
}

// `saved`: the spans of that name in a status; as in JSON, where whole numbers of 64 bits are texts.
export function showSaved(saved) {
  const hours = (value) => (value < 10 ? value.toFixed(1) : numberOf(Math.round(value)));
  const rows = [
    ['Faults masked', (one) => numberOf(one.faults_masked ?? 0)],
    ['Restarts avoided', (one) => numberOf(one.restarts ?? 0)],
    ['GPU hours that these would cost', (one) => `${hours(one.gpu_hours_low ?? 0)} to ${hours(one.gpu_hours_high ?? 0)}`],
    ['Time with fewer rails', (one) => spanOf(Number(one.reduced_ns ?? 0) / 1e6)],
    ['Jobs that died', (one) => numberOf((one.died ?? []).reduce((all, died) => all + Number(died.jobs ?? 0), 0))],
  ];
  const of = (one) => spanOf((Number(one.until_ns) - Number(one.since_ns)) / 1e6);
  find('saved-section').hidden = saved.length === 0;
  replace(
    find('saved'),
    rows
      .map(([name, text]) => [h('dt', {}, name), h('dd', {}, saved.map((one) => `${text(one)} in ${of(one)}`).join(', '))])
      .flat(),
  );
}

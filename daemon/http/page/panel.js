// The verdict of one NIC, with its evidence, the next command and drills.
import {clean, glyph, h, replace} from './dom.js';
import {pageOf} from './links.js';
import {KINDS} from './states.js';
import {countdownOf, spanOf, whenOf} from './text.js';

// A text whose parts between back quotes are commands.
const commands = (text) =>
  clean(text)
    .split('`')
    .map((part, i) => (i % 2 === 1 ? h('code', {}, part) : part));
const cells = (...texts) => texts.map((text) => h('td', {}, clean(String(text))));
const table = (titles, rows) =>
  h(
    'table',
    {},
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        titles.map((title) => h('th', {scope: 'col'}, title)),
      ),
    ),
    h('tbody', {}, rows),
  );

function evidence(why, nowMs) {
  if (why.evidence.length === 0) return [];
  return [
    h('h3', {}, 'Evidence'),
    table(
      ['What', 'Seen', 'By', 'Detail'],
      why.evidence
        .slice(0, 12)
        .map((one) =>
          h(
            'tr',
            {},
            cells(
              one.kind,
              `${one.times}x, last ${whenOf(Number(one.last_ns) / 1e6, nowMs)}`,
              one.observer,
              [one.peer, one.detail].filter(Boolean).join(' '),
            ),
          ),
        ),
    ),
  ];
}

function pairs(why) {
  const rows = why.pairs.filter((pair) => pair.state !== 'unknown').slice(0, 8);
  if (rows.length === 0) return [];
  return [
    h('h3', {}, 'Probes'),
    table(
      ['To', 'State', 'Lost of late', 'Round trip'],
      rows.map((pair) =>
        h(
          'tr',
          {},
          cells(
            `${pair.peer_node}/${pair.peer_nic}`,
            pair.state,
            `${pair.recent_lost} of ${pair.recent}`,
            spanOf(Number(pair.round_trip_last_ns) / 1e6),
          ),
        ),
      ),
    ),
  ];
}

function done(why, nowMs) {
  if (why.done.length === 0) return [];
  return [
    h('h3', {}, 'What happened'),
    h(
      'ol',
      {},
      why.done.slice(0, 8).map((event) => h('li', {}, `${whenOf(Number(event.time_ns) / 1e6, nowMs)} `, clean(event.message))),
    ),
  ];
}

function drills(nic, model, who, act, nowMs) {
  const own = nic.node === model.own,
    may = who?.may_drill;
  let away = null;
  if (may && !own) {
    // The node that acts judges the certificate, and only the browser can show it there.
    const page = pageOf(location, model.own, nic.node, nic.name),
      name = clean(nic.node);
    away = h('p', {class: 'muted'}, 'Drills: open the page of ', page ? h('a', {href: page}, name) : name, ': its daemon judges who may.');
  }
  if (nic.isDrill) {
    const left = h('strong', {'data-ends': String(nic.drillEndsMs)}, countdownOf(nic.drillEndsMs - nowMs));
    return [
      h('h3', {}, 'Drill'),
      h('p', {}, 'The drill ends in ', left, '. '),
      may && own ? h('button', {'data-focus': 'restore', onclick: () => act('restore', nic, nic.key, 0)}, 'End it now') : away,
    ];
  }
  if (!who || away) return [away];
  if (!may) return [h('p', {class: 'muted'}, `Drills: ${clean(who.why_not)}.`)];
  const typed = h('input', {
    'data-focus': 'typed',
    'aria-label': `Type ${nic.key} to confirm`,
    placeholder: nic.key,
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const seconds = h(
    'select',
    {'aria-label': 'Length'},
    [
      [60, '1 min'],
      [300, '5 min'],
      [600, '10 min'],
    ].map(([value, text]) => h('option', {value}, text)),
  );
  const button = h('button', {type: 'submit', disabled: true}, 'Fail it');
  typed.addEventListener('input', () => {
    button.disabled = typed.value !== nic.key;
  });
  const submit = (event) => {
    event.preventDefault();
    if (typed.value === nic.key) act('fail', nic, typed.value, Number(seconds.value));
  };
  return [
    h('h3', {}, 'Drill'),
    h('p', {}, 'A drill takes this NIC away from all jobs until it ends. Type ', h('code', {}, nic.key), ' to confirm.'),
    h('form', {onsubmit: submit}, typed, seconds, button),
  ];
}

// `why`: of /api/v1/nic/why; null: not here yet. `error`: why it does not come.
export function showNic(section, {nic, why, error, model, who, message, nowMs}, act, close) {
  const state = `${KINDS[nic.kind].word}${nic.isDrill ? ' (drill)' : ''}`;
  const planned = why?.planned ? `Weight in the plan: ${why.planned.weight_permille / 10} %.` : '';
  const jobs = why?.traffic?.jobs ?? [];
  replace(
    section,
    h(
      'div',
      {class: 'head'},
      h('h2', {id: 'nic-title'}, glyph(nic.kind), `${clean(nic.key)}: ${state}`),
      h('button', {onclick: close, 'data-focus': 'close'}, 'Close'),
    ),
    h('p', {class: 'verdict'}, why ? clean(why.verdict_text) : error ? `No verdict: ${clean(error)}` : 'Asking its daemon.'),
    nic.reason === '' ? null : h('p', {}, `Reason: ${clean(nic.reason)}. Since ${whenOf(nic.sinceMs, nowMs)}. ${planned}`),
    jobs.length > 0 ? h('p', {}, `Jobs on it: ${clean(jobs.join(', '))}`) : null,
    h('h3', {}, 'Next'),
    h(
      'ul',
      {},
      (why?.advice ?? []).map((text) => h('li', {}, commands(text))),
      h('li', {}, h('code', {}, `r2ccctl nic why ${clean(nic.key)}`)),
    ),
    why ? evidence(why, nowMs) : null,
    why ? pairs(why) : null,
    why ? done(why, nowMs) : null,
    drills(nic, model, who, act, nowMs),
    message ? h('p', {role: 'status'}, clean(message)) : null,
  );
}

// The first line: must a person get up? Pure.
import {KINDS} from './states.js';
import {countsOf, fewestRails} from './model.js';
import {clockOf, countOf} from './text.js';

// The last operator's action of each NIC, by NODE/NIC, of events in their order.
export function ownersOf(events) {
  const owners = new Map();
  for (const event of events) {
    const audit = event.audit;
    if (event.kind !== 'operator' || !audit || audit.refused || !['drain', 'undrain', 'weight', 'fail', 'restore'].includes(audit.action))
      continue;
    owners.set(audit.target, {who: audit.who, action: audit.action, atMs: Number(event.time_ns) / 1e6});
  }
  return owners;
}

function ownersText(lost, owners) {
  const owned = lost.filter((nic) => owners.has(nic.key));
  if (lost.length === 0) return '';
  if (owned.length === 0) return 'No operator has acted on it yet.';
  const last = owned.map((nic) => ({nic, ...owners.get(nic.key)})).sort((a, b) => b.atMs - a.atMs)[0];
  const rest = lost.length - owned.length;
  return (
    `${last.who}: ${last.action} of ${last.nic.key} at ${clockOf(last.atMs)}` +
    (rest > 0 ? `; nobody has acted on the other ${countOf(rest, 'NIC')}.` : '.')
  );
}

// {level: 'yes', 'later' or 'no', answer, details: [...]}.
export function verdictOf(model, jobs, owners) {
  const counts = countsOf(model);
  const fewest = fewestRails(model);
  const lost = [];
  for (const node of model.nodes.values())
    for (const nic of node.nics) if (KINDS[nic.kind].loss && nic.kind !== 'unreachable') lost.push(nic);
  const stopped = jobs.filter((job) => job.stands);
  const risky = jobs.filter((job) => job.atRisk && !job.stands);
  const named = (some) =>
    some
      .slice(0, 3)
      .map((job) => job.name)
      .join(', ') + (some.length > 3 ? ', ...' : '');
  const details = [];
  const answers = [];
  if (stopped.length > 0) answers.push(`${countOf(stopped.length, 'job')} of this node makes no progress (${named(stopped)})`);
  if (risky.length > 0) answers.push(`${countOf(risky.length, 'job')} of this node at risk, with one rail left (${named(risky)})`);
  if (fewest && fewest.last > 0) answers.push(`${countOf(fewest.last, 'node')} with at most one rail left`);
  if (fewest) details.push(`Fewest rails left: ${fewest.left} of ${fewest.rails} on ${fewest.node}.`);
  if (counts.silentNodes > 0)
    details.push(`${countOf(counts.silentNodes, 'node')} ${counts.silentNodes === 1 ? 'does' : 'do'} not answer.`);
  const who = ownersText(lost, owners);
  if (who !== '') details.push(who);
  if (answers.length > 0) return {level: 'yes', answer: `Yes: ${answers.join('; ')}.`, details};
  if (lost.length > 0) {
    const what = counts.drills === lost.length ? `${countOf(lost.length, 'NIC')} in a drill` : `${countOf(lost.length, 'NIC')} not healthy`;
    return {level: 'later', answer: `Not now: ${what}, and no job is at risk.`, details};
  }
  if (counts.silentNodes > 0) return {level: 'later', answer: 'Not now: no rail is lost.', details};
  if (counts.nics === 0) return {level: 'later', answer: 'Not known: r2ccd knows no NIC yet.', details};
  return {level: 'no', answer: `No: all ${countOf(counts.nics, 'NIC')} on ${countOf(counts.nodes, 'node')} are well.`, details};
}

// The jobs of the daemon's node, made of /api/v1/jobs. Pure.
import {carries} from './states.js';

// "AllReduce 12 of tp0 (rank 3 of 8) waited for rail0": the operation of NCCL that a lost rail held up longest.
export function heldText(held) {
  const name = held.communicator_name || BigInt(held.communicator).toString(16);
  const ranks = held.ranks ? ` of ${held.ranks}` : '';
  return `${held.function} ${held.number || ''} of ${name} (rank ${held.rank}${ranks}) waited for ${held.nic}`.replace('  ', ' ');
}

// Processes of one name, run and user are one job.
export function jobsOf(reply, model) {
  const own = model.nodes.get(model.own);
  const usable = new Map((own?.nics ?? []).map((nic) => [nic.name, carries(nic.kind)]));
  const jobs = new Map();
  for (const process of reply.jobs) {
    const key = JSON.stringify([process.job, process.run, process.uid]);
    if (!jobs.has(key))
      jobs.set(key, {
        key,
        name: process.job || `pid ${process.pid}`,
        run: process.run,
        uid: process.uid,
        processes: 0,
        peers: new Set(),
        rails: 0,
        left: Infinity,
        faults: 0,
        open: 0,
        stallMs: 0,
        longestMs: 0,
        replayed: 0,
        gaveUp: 0,
        held: null,
      });
    const job = jobs.get(key);
    ++job.processes;
    for (const peer of process.peer_nodes) job.peers.add(peer);
    const rails = process.rails.filter((rail) => rail.nic !== '');
    job.rails = Math.max(job.rails, rails.length);
    if (rails.length > 0) job.left = Math.min(job.left, rails.filter((rail) => usable.get(rail.nic) ?? true).length);
    for (const rail of process.rails) job.replayed += Number(rail.replayed_bytes);
    for (const fault of process.faults) {
      const stall = Number(fault.stall_ns) / 1e6;
      ++job.faults;
      job.stallMs += stall;
      job.longestMs = Math.max(job.longestMs, stall);
      if (fault.open_links > 0) ++job.open;
      for (const held of fault.held ?? []) {
        const ms = Number(held.held_ns) / 1e6;
        if (!(ms <= job.held?.ms)) job.held = {...held, ms, nic: fault.nic || fault.rail};
      }
    }
    job.faults += process.faults_untold;
    job.gaveUp += process.gave_up.length;
  }
  return [...jobs.values()]
    .map((job) => {
      const left = job.left === Infinity ? job.rails : job.left;
      return {...job, left, peers: job.peers.size, stands: job.open > 0 || job.gaveUp > 0, atRisk: job.rails > 1 && left <= 1};
    })
    .sort((a, b) => b.stands - a.stands || b.atRisk - a.atRisk || b.faults - a.faults || a.name.localeCompare(b.name));
}

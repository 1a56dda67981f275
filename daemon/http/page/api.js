// The requests of the page to its daemon.

// The daemon answers within 5 s, or that it cannot.
const PATIENCE_MS = 10000;

export async function ask(path) {
  const response = await fetch(path, {cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS)});
  if (!response.ok) throw Object.assign(new Error((await response.text()).trim()), {status: response.status});
  return response.json();
}

const query = (values) => new URLSearchParams(values).toString();
export const askMap = (node = '') => ask(node === '' ? '/api/v1/map' : `/api/v1/map?${query({node})}`);
export const askWhy = (node, nic) => ask(`/api/v1/nic/why?${query({node, nic})}`);

// Begins (`action` is "fail") or ends ("restore") a drill; `typed` is what a person typed, as NODE/NIC.
export async function drill(action, node, nic, typed, seconds) {
  const values = action === 'fail' ? {action, node, nic, seconds} : {action, node, nic};
  const response = await fetch(`/api/v1/drill?${query(values)}`, {method: 'POST', headers: {'R2CC-Confirm': typed}});
  if (!response.ok) throw new Error((await response.text()).trim());
}

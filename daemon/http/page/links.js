// The address of another node's page. Pure.

// A host's name without a domain: a node of another name could be anybody's host.
const HOST = /^[a-z0-9]+(-[a-z0-9]+)*$/i;

// The address of the NIC `nic` on the page of `node`; null: the node's name is none of those. A page that was opened by the own node's
// name in a domain, as n1.example, leads to the other node in that domain. `at`: this page's location.
export function pageOf(at, own, node, nic) {
  if (!HOST.test(node)) return null;
  const domain = at.hostname.startsWith(`${own.toLowerCase()}.`) ? at.hostname.slice(own.length) : '';
  return `${at.protocol}//${node}${domain}${at.port && `:${at.port}`}/#${new URLSearchParams({nic: `${node}/${nic}`})}`;
}

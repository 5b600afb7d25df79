/**
 * Decides whether a link may be one: its target is on the web (or mail or phone), and its label, if it
 * looks like an address, names the same host. Other schemes can ping people or start programs.
 */
const SCHEMES = new Set(['http:', 'https:', 'mailto:', 'tel:']);
const ADDRESS =
  /(?:^|[\s(])(?:[a-z][a-z0-9+.-]*:\/\/)?((?:[\p{L}\p{N}-]+\.)+(\p{L}{2,24}))(?::\d+)?(?=[/?#\s).,;:!]|$)/iu;
/** Endings that are files far more often than hosts. */
const FILE_ENDING =
  /^(?:md|ts|js|mjs|py|rs|sh|go|json|ya?ml|toml|txt|html?|css|csv|pdf|png|jpe?g|zip|sql|java|cpp)$/i;

/**
 * Longer ones (UTF-16 units) stay text: where a link is written into the message, each piece of its label
 * carries the whole address.
 */
const LONGEST_ADDRESS = 1_000;

/** False when a reader could be led somewhere else than the label says. */
export function isHonestLink(url: string, label: string): boolean {
  if (url.length > LONGEST_ADDRESS) return false;
  const target = parseUrl(url);
  // A space would end the link early in some networks' markup; a user name disguises the host.
  if (!target || !SCHEMES.has(target.protocol) || target.username !== '' || /\s/.test(url)) return false;
  const claim = ADDRESS.exec(label);
  if (!target.protocol.startsWith('http') || !claim) return true;
  const [, host = '', ending = ''] = claim;
  return FILE_ENDING.test(ending) || bareHost(host) === bareHost(target.hostname);
}

function bareHost(name: string): string {
  return (parseUrl(`https://${name}`)?.hostname ?? name).replace(/^www\./, '');
}

function parseUrl(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}

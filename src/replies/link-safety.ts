/**
 * Decides whether a link is kept: its target must be on the web (or mail or phone), and its label, if it
 * looks like an address, must name the same host. Other schemes can ping people or start programs.
 */
const SCHEMES = new Set(['http:', 'https:', 'mailto:', 'tel:']);
const ADDRESS =
  /(?:^|[\s(])(?:[a-z][a-z0-9+.-]*:\/\/)?((?:[\p{L}\p{N}-]+\.)+(\p{L}{2,24}))(?::\d+)?(?=[/?#\s).,;:!]|$)/iu;
/** Endings that are far more often those of files than of hosts. */
const FILE_ENDING =
  /^(?:md|ts|js|mjs|py|rs|sh|go|json|ya?ml|toml|txt|html?|css|csv|pdf|png|jpe?g|zip|sql|java|cpp)$/i;

/**
 * Links with longer addresses (UTF-16 units) stay text: on networks that write links into the message, each piece of
 * the label contains the complete address.
 */
const LONGEST_ADDRESS = 1_000;

/** Returns false if the link could lead somewhere other than its label says. */
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

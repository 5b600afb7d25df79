// Decides which Node.js runs Parley, and names the command that installs one when this one can't.
// Plain JavaScript without dependencies: even a Node.js that is refused has to be able to read it.
import { existsSync } from 'node:fs';

/** The oldest Node.js that runs Parley: it strips types, and the dependencies need it. */
export const oldestNode = 24;
/** The oldest one whose npm can install Parley with a Node.js of its own. */
const oldestInstaller = 20;

/** The platforms for which the dependencies include a Node.js (package.json, optionalDependencies). */
export const bundledPlatforms = ['linux-x64', 'linux-arm64'];

const majorOf = (host) => Number(host.versions.node.split('.')[0]);
const isMusl = (host) => host.platform === 'linux' && existsSync('/etc/alpine-release');

export const isNewEnough = (host = process) => majorOf(host) >= oldestNode;

/** Returns why nothing can be installed with this Node.js, and the command that helps; undefined when it can. */
export function refuseOldNode(host = process) {
  if (isNewEnough(host)) return undefined;
  const platform = `${host.platform}-${host.arch}`;
  const isBundled = bundledPlatforms.includes(platform) && !isMusl(host);
  if (isBundled && majorOf(host) >= oldestInstaller) return undefined;
  const needed = isBundled ? oldestInstaller : oldestNode;
  const where = isMusl(host) ? `${platform} with musl` : platform;
  const why = isBundled ? '' : `, and none is bundled for ${where}`;
  return `Parley needs Node.js ${needed} or newer; this is ${host.versions.node}${why}. Install Node.js ${oldestNode}, then run this again:\n\n  ${upgradeCommand(host)}\n`;
}

/** Returns the command that installs a suitable Node.js the way this one was installed, as far as that can be told. */
function upgradeCommand(host) {
  const { NVM_DIR: nvm, FNM_DIR: fnm, FNM_MULTISHELL_PATH: fnmShell, VOLTA_HOME: volta } = host.env;
  if (nvm) return `nvm install ${oldestNode}`;
  if (fnm || fnmShell) return `fnm install ${oldestNode} && fnm use ${oldestNode}`;
  if (volta) return `volta install node@${oldestNode}`;
  if (host.platform === 'darwin')
    return `brew install node@${oldestNode} && brew link --overwrite --force node@${oldestNode}`;
  if (host.platform === 'win32') return 'winget install OpenJS.NodeJS.LTS';
  if (isMusl(host)) return 'apk add --upgrade nodejs npm   # Alpine 3.23 or newer';
  return `sudo npx --yes n ${oldestNode}`;
}

/** The commands of this installation, for texts: they must be ready to copy. */
import { existsSync } from 'node:fs';

/** A clone, an installed package, or the image that `docker compose` runs. */
export type Installation = 'clone' | 'package' | 'image';

export type OwnCommands = {
  /** Starts Parley. */
  readonly start: string;
  /** Opens the chat. */
  readonly chat: string;
  /** Runs Parley's command line; a verb follows. */
  readonly parley: string;
};

/** Returns the commands as a person types them; for the image, on the host that runs it. */
export function commandsOf(installation: Installation): OwnCommands {
  switch (installation) {
    case 'clone':
      return { start: 'npm start', chat: 'npm run chat', parley: './bin/parley.mjs' };
    case 'package':
      return { start: 'parley start', chat: 'parley chat', parley: 'parley' };
    case 'image': {
      const parley = 'docker compose exec parley parley';
      return { start: 'docker compose up -d', chat: `${parley} chat`, parley };
    }
    default:
      return installation satisfies never;
  }
}

/** Says whether this process runs in a container. */
export function isContainer(): boolean {
  return existsSync('/.dockerenv') || existsSync('/run/.containerenv');
}

/** Set by scripts/bundle.mjs in the bundle of a package, which has no npm scripts. */
declare const PARLEY_IS_PACKAGED: true | undefined;

function ownInstallation(): Installation {
  if (typeof PARLEY_IS_PACKAGED === 'undefined') return 'clone';
  // The Dockerfile puts the bundle there; a package in somebody's own container is elsewhere.
  return isContainer() && import.meta.dirname.startsWith('/app/dist/') ? 'image' : 'package';
}

const installation = ownInstallation();
const own = commandsOf(installation);

/** Whether this is the image that `docker compose` runs, and not only some container. */
export const isImage = installation === 'image';

/** Command that starts this installation, for texts. */
export const startCommand = own.start;

/** Command that opens the chat of this installation, for texts. */
export const chatCommand = own.chat;

/** Command that runs Parley's command line here, for texts. */
export const parleyCommand = own.parley;

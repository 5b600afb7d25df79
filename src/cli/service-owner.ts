import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';

/** A numeric user and group. */
export type Owner = { readonly uid: number; readonly gid: number };

type Places = {
  readonly dataDir: string;
  readonly home: string;
  /** Who types the command, `sudo` or not. */
  readonly caller: Owner;
};

/**
 * Finds who the machine's service runs as: the owner of the data; before there is any, the owner of the home, then who
 * types the command. Throws ParleyError `invalid_input` where only root is left.
 */
export function findOwner({ dataDir, home, caller }: Places): Owner {
  if (existsSync(dataDir)) return ownerOf(dataDir);
  const owner = [...(existsSync(home) ? [ownerOf(home)] : []), caller].find(({ uid }) => uid !== 0);
  if (owner !== undefined) return owner;
  throw new ParleyError(
    'invalid_input',
    `Parley would run as root. Give its data to another user first, then type this again: install -d -m 700 -o <user> -g <group> ${dataDir}\nTo keep root, start it once by hand: ${parleyCommand} start`,
  );
}

function ownerOf(path: string): Owner {
  const { uid, gid } = statSync(path);
  return { uid, gid };
}

/** Makes a folder with those above it; what root makes belongs to the owner, who couldn't write there otherwise. */
export function makeFolderFor(owner: Owner, path: string): void {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined || process.getuid?.() !== 0) return;
  for (let made = path; ; made = dirname(made)) {
    chownSync(made, owner.uid, owner.gid);
    if (made === first || made === dirname(made)) return;
  }
}

/** The home of a user, which `sudo` may have hidden behind root's; undefined when the machine doesn't know them. */
export function userHome({ uid }: Owner): string | undefined {
  const { stdout } = spawnSync('getent', ['passwd', String(uid)], { encoding: 'utf8' });
  return stdout?.trim().split(':')[5] || undefined;
}

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
  /** The user who ran the command, with or without `sudo`. */
  readonly caller: Owner;
};

/**
 * Returns the user that the machine's service runs as: the owner of the data; if there is none yet, the owner of the
 * home, then the user running the command. Throws ParleyError `invalid_input` if only root is left.
 */
export function findOwner({ dataDir, home, caller }: Places): Owner {
  if (existsSync(dataDir)) return ownerOf(dataDir);
  const owner = [...(existsSync(home) ? [ownerOf(home)] : []), caller].find(({ uid }) => uid !== 0);
  if (owner !== undefined) return owner;
  throw new ParleyError(
    'invalid_input',
    `Parley would run as root. Give its data to another user, then try again: install -d -m 700 -o <user> -g <group> ${dataDir}\nTo run as root anyway, start it once by hand: ${parleyCommand} start`,
  );
}

function ownerOf(path: string): Owner {
  const { uid, gid } = statSync(path);
  return { uid, gid };
}

/** Creates a folder and its parents; those that root creates are given to the owner, who couldn't write otherwise. */
export function makeFolderFor(owner: Owner, path: string): void {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined || process.getuid?.() !== 0) return;
  for (let made = path; ; made = dirname(made)) {
    chownSync(made, owner.uid, owner.gid);
    if (made === first || made === dirname(made)) return;
  }
}

/** Returns a user's home, which `sudo` may have replaced by root's; undefined if the machine doesn't know the user. */
export function userHome({ uid }: Owner): string | undefined {
  const { stdout } = spawnSync('getent', ['passwd', String(uid)], { encoding: 'utf8' });
  return stdout?.trim().split(':')[5] || undefined;
}

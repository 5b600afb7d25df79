import { ParleyError } from '#contracts/errors.ts';
import { hashPairingCode, readOneTimeCode } from '../commands/one-time-code.ts';
import { atConsole, describeAccess, isRef } from '../commands/pair.ts';
import { hasOwner, loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { approveOnConsole, readAccess, revokeOnConsole } from '../store/access/operate-access.ts';
import { personLabel } from '../store/access/person-label.ts';
import { noticesFor } from '../texts/notices.ts';
import type { ExitCode } from './exit-code.ts';
import { withStore } from './with-store.ts';

export async function runPairList({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const config = loadConfig();
  const list = await withStore((store) => store.read(readAccess, { limit: 1000 }), config);
  const texts = noticesFor(config.language, config.texts);
  const text = asJson ? JSON.stringify(list, undefined, 2) : describeAccess(list, Date.now(), texts);
  process.stdout.write(`${text.split('\n').map(stripText).join('\n')}\n`);
  return 0;
}

/** The machine's user names the first owner by their first approval, unless the configuration names one. */
export async function runPairApprove(typed: string): Promise<ExitCode> {
  const code = readOneTimeCode(typed);
  if (code === undefined)
    throw new ParleyError('invalid_input', `“${typed}” isn't a code: codes have 8 letters and digits.`);
  const config = loadConfig();
  const approval = {
    codeHash: hashPairingCode(code),
    by: atConsole,
    role: hasOwner(config) ? 'user' : 'owner-if-none',
  } as const;
  const approved = await withStore((store) => store.write(approveOnConsole, approval), config);
  switch (approved.kind) {
    case 'approved': {
      const { role } = approved;
      process.stdout.write(
        stripText(`${personLabel(approved)} can write now${role === 'owner' ? ', as the owner' : ''}.`),
      );
      process.stdout.write('\n');
      return 0;
    }
    case 'unknown':
      throw new ParleyError(
        'invalid_input',
        'No pending request has that code. If it expired, their next message gets a new one.',
      );
    case 'limited':
      throw new ParleyError('invalid_input', 'Too many codes. Please try again in a minute.');
    default:
      return approved satisfies never;
  }
}

export async function runPairRevoke(ref: string): Promise<ExitCode> {
  if (!isRef(ref))
    throw new ParleyError('invalid_input', `“${ref}” isn't of the form channel:id. See: parley pair list`);
  const config = loadConfig();
  const { people, requests } = await withStore((store) => store.write(revokeOnConsole, { ref }), config);
  const isNamed = config.owners.includes(ref) || config.access.allowFrom.includes(ref);
  const still = isNamed ? ' They still have access through the configuration: remove them there.' : '';
  if (people + requests === 0)
    throw new ParleyError('invalid_input', `${ref} has no approval or pending request.${still}`);
  process.stdout.write(`${ref} can no longer write.${still}\n`);
  return 0;
}

import { ParleyError } from '#contracts/errors.ts';
import { hasOwner, loadConfig } from '../config/load-config.ts';
import { readOneTimeCode } from '../inbound/one-time-code.ts';
import { describeAccess } from '../inbound/pair-command.ts';
import { isRef } from '../inbound/pair-request.ts';
import { hashPairingCode } from '../inbound/pairing.ts';
import { stripText } from '../logging/redaction.ts';
import { noticesFor } from '../replies/notices.ts';
import { approveOnConsole, readAccess, revokeOnConsole } from '../store/access/operate-access.ts';
import { personLabel } from '../store/access/person-label.ts';
import type { ExitCode } from './exit-code.ts';
import { withStore } from './with-store.ts';

export async function runPairList({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const list = await withStore((store) => store.read(readAccess, { limit: 1000 }));
  const text = asJson ? JSON.stringify(list, undefined, 2) : describeAccess(list, Date.now());
  process.stdout.write(`${text.split('\n').map(stripText).join('\n')}\n`);
  return 0;
}

/** Whoever sits at the machine names the first owner by their first approval, unless the configuration has. */
export async function runPairApprove(typed: string): Promise<ExitCode> {
  const code = readOneTimeCode(typed);
  if (code === undefined)
    throw new ParleyError('invalid_input', `“${typed}” is no code: those have 8 letters and digits.`);
  const config = loadConfig();
  const approval = {
    codeHash: hashPairingCode(code),
    by: 'console',
    role: hasOwner(config) ? 'user' : 'owner-if-none',
    text: noticesFor(config.language, config.texts).pairingApproved,
  } as const;
  const approved = await withStore((store) => store.write(approveOnConsole, approval), config);
  switch (approved.kind) {
    case 'approved': {
      const { role } = approved;
      process.stdout.write(
        stripText(`${personLabel(approved)} may write now${role === 'owner' ? ', as the owner' : ''}.`),
      );
      process.stdout.write('\n');
      return 0;
    }
    case 'unknown':
      throw new ParleyError(
        'invalid_input',
        'Nobody waits with that code. It may have expired: the person then gets a new one for their next message.',
      );
    case 'limited':
      throw new ParleyError(
        'invalid_input',
        'Too many codes were tried within a minute, so this one was not looked at. Wait a minute and try again.',
      );
    default:
      return approved satisfies never;
  }
}

export async function runPairRevoke(ref: string): Promise<ExitCode> {
  if (!isRef(ref))
    throw new ParleyError(
      'invalid_input',
      `“${ref}” is not of the form channel:id; parley pair list shows them.`,
    );
  const config = loadConfig();
  const { people, requests } = await withStore((store) => store.write(revokeOnConsole, { ref }), config);
  const isNamed = config.owners.includes(ref) || config.access.allowFrom.includes(ref);
  const still = isNamed ? ' The configuration names them, and lets them in: take them out there.' : '';
  if (people + requests === 0)
    throw new ParleyError(
      'invalid_input',
      `${ref} was not let in by a code, and does not ask to be.${still}`,
    );
  process.stdout.write(`${ref} may not write any more.${still}\n`);
  return 0;
}

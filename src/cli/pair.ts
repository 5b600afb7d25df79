import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { atConsole, describeAccess, isRef, readRequestName } from '../commands/pair.ts';
import type { Config } from '../config/config.ts';
import { hasOwner, loadConfig } from '../config/load-config.ts';
import { approveOnConsole, readAccess, revokeOnConsole } from '../store/access/operate-access.ts';
import { type Decider, personLabel } from '../store/access/sender-roles.ts';
import { textsFor } from '../texts/chat-texts.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';
import { withStore } from './with-store.ts';

/** Lists pending requests and approvals. */
export async function listAccess(): Promise<CommandOutput> {
  const config = configForReading();
  const list = await withStore((store) => store.read(readAccess, { limit: 1000 }), config);
  const texts = textsFor(config.language, config.texts);
  const hasNoOwner = !hasOwner(config) && !list.people.some(({ role }) => role === 'owner');
  const hint = [
    'There’s no owner yet: the first person you approve becomes the owner and may do everything.',
  ];
  const lines = describeAccess(list, { now: Date.now() }, texts).split('\n');
  return { result: list, lines: [...lines, ...(hasNoOwner ? hint : [])] };
}

/** Approves a person. The first one approved on the machine becomes the owner, unless the configuration names one. */
export async function approvePerson(typed: string): Promise<CommandOutput> {
  const named = readRequestName(typed);
  if (!named)
    throw new ParleyError(
      'invalid_input',
      `“${typed}” isn't a code of 8 letters and digits, nor an id of the form channel:id.`,
    );
  const config = loadConfig();
  const approval = { of: named.of, by: consoleDecider(config) };
  const approved = await withStore((store) => store.write(approveOnConsole, approval), config);
  switch (approved.kind) {
    case 'approved': {
      const { ref, name, role } = approved;
      const lines = [`${personLabel(approved)} can write now${role === 'owner' ? ', as the owner' : ''}.`];
      return { result: { ref, name, role }, lines };
    }
    case 'unknown':
      throw new ParleyError(
        'invalid_input',
        'There is no such pending request. If it expired, their next message makes a new one.',
      );
    case 'limited':
      throw new ParleyError('invalid_input', 'Too many codes. Please try again in a minute.');
    default:
      return approved satisfies never;
  }
}

function consoleDecider(config: Config): Decider {
  const { whoAtConsole: label } = textsFor(config.language, config.texts);
  return { ref: atConsole, label, isOwner: true, role: hasOwner(config) ? 'user' : 'owner-if-none' };
}

export async function revokePerson(ref: string): Promise<CommandOutput> {
  if (!isRef(ref))
    throw new ParleyError(
      'invalid_input',
      `“${ref}” isn't in the form channel:id. See: ${parleyCommand} pair list`,
    );
  const config = loadConfig();
  const { people, requests } = await withStore(
    (store) => store.write(revokeOnConsole, { ref, by: consoleDecider(config) }),
    config,
  );
  const isNamed = config.owners.includes(ref) || config.access.allowFrom.includes(ref);
  const still = isNamed ? ' They still have access through the configuration: remove them there.' : '';
  if (people + requests === 0)
    throw new ParleyError('invalid_input', `${ref} has no approval or pending request.${still}`);
  return { result: { ref, isStillNamed: isNamed }, lines: [`${ref} can no longer write.${still}`] };
}

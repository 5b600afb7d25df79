import { keyOf, nobody } from '#channel-kit/event-mapping.ts';
import { keepRecent } from '#channel-kit/keep-recent.ts';
import { createYielder } from '#channel-kit/take-turns.ts';
import type { InboundEnvelope, Sender } from '#contracts/envelope.ts';
import type { ListedGroup, ListedPerson } from './api.ts';
import { type Bot, readAci, routeOf } from './ids.ts';
import type { GroupChange } from './inbound.ts';

export type KnownGroup = {
  /** By ACI. */
  readonly admins: ReadonlySet<string>;
  readonly isMember: boolean;
};

export type GroupBookDeps = {
  list(signal: AbortSignal): Promise<readonly ListedGroup[]>;
  bot(): Bot;
  now(): number;
  /** Called when the bot was added or removed. */
  onMembership(envelope: InboundEnvelope): void;
};

/** After this time, ms, the next group message has the list read again: the report of a change may have been lost. */
const believedForMs = 3_600_000;
/** How often a group that isn't in the list is asked for again, ms. */
const unknownForMs = 60_000;
/** How many groups outside the list are remembered: anybody may name one. */
const maxOutside = 1_000;

/**
 * Facts that messages lack about their groups: the administrators, and whether the bot is a member. They are requested
 * in the background and served from memory, because a webhook that asked the server before answering would wait
 * forever: until then, the server reads no other answers.
 */
export class GroupBook {
  readonly #deps: GroupBookDeps;
  readonly #known = new Map<string, KnownGroup>();
  readonly #askedAt = new Map<string, number>();
  /** Who has changed a group since it was last listed. */
  readonly #changedBy = new Map<string, Sender>();
  #lookedAt = 0;

  constructor(deps: GroupBookDeps) {
    this.#deps = deps;
  }

  groupOf(id: string): KnownGroup | undefined {
    return this.#known.get(id);
  }

  /** Says whether these events are a reason to read the list again. */
  needsLook(events: readonly InboundEnvelope[], changed: readonly GroupChange[]): boolean {
    for (const { group, by } of changed) keepRecent(this.#changedBy, maxOutside, [group, by]);
    const now = this.#deps.now();
    const inGroups = events.filter(({ chat }) => chat.kind === 'group');
    const unknown = inGroups
      .filter(({ route }) => !this.#known.has(route.conversation))
      .map(({ route }) => route.conversation)
      .filter((id) => now - (this.#askedAt.get(id) ?? 0) > unknownForMs);
    for (const id of unknown) keepRecent(this.#askedAt, maxOutside, [id, now]);
    const isOld = inGroups.length > 0 && Math.abs(now - this.#lookedAt) > believedForMs;
    // The next read waits, whether or not this one succeeds.
    if (isOld) this.#lookedAt = now;
    return changed.length > 0 || unknown.length > 0 || isOld;
  }

  /**
   * Reads the list and reports what has changed since it was last read. A new group in it was joined by the change that
   * caused this read; without such a change, the bot was a member before Parley started.
   */
  async look(signal: AbortSignal): Promise<void> {
    const bot = this.#deps.bot();
    this.#lookedAt = this.#deps.now();
    const turn = createYielder();
    for (const entry of await this.#deps.list(signal)) {
      const { internal_id: id } = entry;
      const by = this.#changedBy.get(id);
      this.#changedBy.delete(id);
      const wasMember = this.#known.get(id)?.isMember ?? (by === undefined ? undefined : false);
      const group = readGroup(entry, bot);
      this.#known.set(id, group);
      if (wasMember !== undefined && wasMember !== group.isMember)
        this.#deps.onMembership(this.#membership(id, group, by ?? nobody));
      await turn();
    }
  }

  #membership(id: string, { isMember }: KnownGroup, sender: Sender): InboundEnvelope {
    const { now, bot } = this.#deps;
    const at = now();
    return {
      eventKey: keyOf('membership', id, isMember ? 'in' : 'out', at),
      sentAt: at,
      route: routeOf(bot(), id),
      chat: { kind: 'group' },
      sender,
      event: { kind: 'membership', isMember },
    };
  }
}

function readGroup({ admins, members, member }: ListedGroup, bot: Bot): KnownGroup {
  const isIn = (members ?? []).some((one) => isBot(one, bot));
  return {
    admins: new Set((admins ?? []).flatMap((one) => aciOf(one, bot) ?? [])),
    isMember: member ?? isIn,
  };
}

/** People are listed by number or ACI, or by both. */
function aciOf(person: ListedPerson, bot: Bot): string | undefined {
  return isBot(person, bot) ? bot.aci : readAci(typeof person === 'string' ? person : person.uuid);
}

function isBot(person: ListedPerson, { aci, number }: Bot): boolean {
  if (typeof person === 'string') return person === number || readAci(person) === aci;
  return person.number === number || readAci(person.uuid) === aci;
}

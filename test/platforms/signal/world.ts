import { randomBytes, randomUUID } from 'node:crypto';
import {
  type Account,
  badRequest,
  type Group,
  type MentionRange,
  type Person,
  type Place,
  type Quote,
  type StandingMessage,
  type StoredAttachment,
  type StyleRange,
} from './types.ts';

export type NewMessage = {
  readonly from: Person;
  readonly text?: string;
  readonly styles?: readonly StyleRange[];
  readonly mentions?: readonly MentionRange[];
  readonly quote?: Quote;
  readonly attachments?: readonly StoredAttachment[];
  readonly sticker?: string;
  readonly timestamp?: number;
  readonly isByCall?: boolean;
};

/** The current people, groups, conversations and files. Knows nothing about HTTP or envelopes. */
export class World {
  readonly #now: () => number;
  readonly accounts: Account[] = [];
  readonly people: Person[] = [];
  readonly groups: Group[] = [];
  readonly attachments = new Map<string, StoredAttachment>();
  readonly #conversations = new Map<string, StandingMessage[]>();
  /** Seconds until messages disappear, by conversation. */
  readonly #timers = new Map<string, number>();
  #last = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  addAccount(account: Partial<Account> & { readonly number: string }): Account {
    const made = { name: 'Parley', uuid: randomUUID(), ...account };
    this.accounts.push(made);
    return made;
  }

  renameAccount(account: Account, name: string): void {
    Object.assign(account, { name });
  }

  /** `number: null` is a person who hides it. */
  addPerson(person: Partial<Person> & { readonly name: string }): Person {
    const index = this.people.length + 1;
    const made = { uuid: randomUUID(), number: `+1555200${String(index).padStart(4, '0')}`, ...person };
    this.people.push(made);
    return made;
  }

  addGroup(group: { readonly name: string; readonly members: readonly Person[] } & Partial<Group>): Group {
    const internalId = group.internalId ?? randomBytes(32).toString('base64');
    const made: Group = {
      internalId,
      id: groupIdOf(internalId),
      name: group.name,
      description: group.description ?? '',
      revision: 0,
      members: [...group.members],
      admins: group.admins ?? new Set(group.members.slice(0, 1).map(({ uuid }) => uuid)),
      expiresInSeconds: 0,
      isAnnouncement: group.isAnnouncement ?? false,
    };
    this.groups.push(made);
    return made;
  }

  addAttachment(file: Partial<StoredAttachment> & { readonly bytes: Uint8Array }): StoredAttachment {
    const fileName = file.fileName ?? null;
    const extension = fileName?.includes('.') ? fileName.slice(fileName.lastIndexOf('.')) : '';
    const id = file.id ?? `${randomBytes(15).toString('base64url')}${extension}`;
    const made = { contentType: 'application/octet-stream', ...file, id, fileName };
    this.attachments.set(id, made);
    return made;
  }

  /** Returns the next timestamp: the clock in whole milliseconds, but never the same one twice. */
  nextTimestamp(): number {
    this.#last = Math.max(this.#last + 1, Math.floor(this.#now()));
    return this.#last;
  }

  account(number: string): Account {
    const account = this.accounts.find((one) => one.number === number);
    if (account === undefined) throw badRequest(`User ${number} is not registered.`);
    return account;
  }

  group(internalId: string): Group | undefined {
    return this.groups.find((one) => one.internalId === internalId);
  }

  /** Finds a person by uuid, number or username; accounts are people as well. */
  person(id: string): Person | undefined {
    const all = [...this.people, ...this.accounts];
    return all.find(({ uuid, number, username }) => uuid === id || number === id || username === id);
  }

  /** Returns the messages in a conversation of an account, oldest first, including deleted ones. */
  messages(account: Account, place: Place): StandingMessage[] {
    const key = keyOf(account, place);
    const known = this.#conversations.get(key);
    if (known !== undefined) return known;
    const made: StandingMessage[] = [];
    this.#conversations.set(key, made);
    return made;
  }

  find(account: Account, place: Place, timestamp: number, author?: Person): StandingMessage | undefined {
    return this.messages(account, place).find(
      (one) => one.timestamp === timestamp && (author === undefined || one.from.uuid === author.uuid),
    );
  }

  add(account: Account, place: Place, message: NewMessage): StandingMessage {
    const standing: StandingMessage = {
      account,
      place,
      timestamp: message.timestamp ?? this.nextTimestamp(),
      from: message.from,
      isByCall: message.isByCall ?? false,
      text: message.text ?? '',
      styles: message.styles ?? [],
      mentions: message.mentions ?? [],
      quote: message.quote,
      attachments: message.attachments ?? [],
      sticker: message.sticker,
      expiresInSeconds: this.timer(account, place),
      history: [],
      isDeleted: false,
      reactions: new Map(),
      readBy: new Set(),
    };
    this.messages(account, place).push(standing);
    return standing;
  }

  edit(
    message: StandingMessage,
    content: Pick<StandingMessage, 'text' | 'styles' | 'mentions'>,
    editedAt: number,
  ) {
    message.history.push({ text: message.text, editedAt });
    Object.assign(message, content);
  }

  timer(account: Account, place: Place): number {
    return 'group' in place ? place.group.expiresInSeconds : (this.#timers.get(keyOf(account, place)) ?? 0);
  }

  setTimer(account: Account, place: Place, seconds: number): void {
    if ('group' in place) place.group.expiresInSeconds = seconds;
    else this.#timers.set(keyOf(account, place), seconds);
  }
}

/** Returns a group's id in the form that calls use: a prefix and base64 of the id in messages. */
export function groupIdOf(internalId: string): string {
  return `group.${Buffer.from(internalId).toString('base64')}`;
}

function keyOf(account: Account, place: Place): string {
  if ('group' in place) return place.group.internalId;
  return [account.uuid, place.person.uuid].sort().join('|');
}

import {
  contentFields,
  dataMessage,
  destination,
  groupInfo,
  notification,
  type Payload,
  reactionField,
} from './envelopes.ts';
import type {
  Account,
  Group,
  MentionRange,
  Notification,
  Person,
  Place,
  StandingMessage,
  StoredAttachment,
  StyleRange,
} from './types.ts';
import type { World } from './world.ts';

/** What a person writes. If `from` is an account, its owner is writing on another device. */
export type Writing = {
  readonly from: Person;
  /** A group, or the recipient of a direct message. If omitted: the first account; for its owner, oneself. */
  readonly to?: Group | Person;
  readonly text?: string;
  /** Each `@name` of these people in the text becomes a mention. */
  readonly mentioning?: readonly Person[];
  readonly quoting?: StandingMessage;
  readonly styles?: readonly StyleRange[];
  readonly attachments?: readonly StoredAttachment[];
  /** `pack:id`. */
  readonly sticker?: string;
  readonly timestamp?: number;
  readonly device?: number;
  /** Further fields of the data message: previews, contacts, viewOnce, pollCreate … */
  readonly fields?: Readonly<Record<string, unknown>>;
};

type PeopleDeps = {
  readonly world: World;
  readonly emit: (notification: Notification) => void;
};

/** What people do on Signal; each act changes the conversation and is reported to the accounts in it. */
export class People {
  readonly #deps: PeopleDeps;

  constructor(deps: PeopleDeps) {
    this.#deps = deps;
  }

  writes(writing: Writing): StandingMessage {
    const { world } = this.#deps;
    const { account, place } = this.#whereOf(writing.from, writing.to);
    const { text, mentions } = withMentions(writing.text ?? '', writing.mentioning ?? []);
    const { quoting, styles, attachments, sticker, timestamp } = writing;
    const message = world.add(account, place, {
      from: writing.from,
      text,
      mentions,
      ...(styles === undefined ? {} : { styles }),
      ...(attachments === undefined ? {} : { attachments }),
      ...(sticker === undefined ? {} : { sticker }),
      ...(timestamp === undefined ? {} : { timestamp }),
      ...(quoting === undefined
        ? {}
        : {
            quote: { timestamp: quoting.timestamp, authorUuid: quoting.from.uuid, text: quoting.text },
          }),
    });
    const fields = { ...this.#content(message, quoting), ...writing.fields };
    this.#say(message, message.timestamp, fields, writing.device);
    return message;
  }

  /** Returns the timestamp of the edit. */
  edits(message: StandingMessage, text: string, mentioning: readonly Person[] = []): number {
    const { world } = this.#deps;
    const at = world.nextTimestamp();
    world.edit(message, { ...withMentions(text, mentioning), styles: [] }, at);
    const data = this.#data(message, at);
    const editMessage = { targetSentTimestamp: message.timestamp, dataMessage: data };
    this.#report(message.from, message, at, { editMessage }, { editMessage });
    return at;
  }

  /** Deletes the message for everyone. */
  deletes(message: StandingMessage): void {
    message.isDeleted = true;
    const at = this.#deps.world.nextTimestamp();
    this.#sayAs(message.from, message, at, { remoteDelete: { timestamp: message.timestamp } });
  }

  /** `emoji` undefined removes the reaction. */
  reacts(from: Person, message: StandingMessage, emoji: string | undefined): void {
    const before = message.reactions.get(from.uuid) ?? '👍';
    if (emoji === undefined) message.reactions.delete(from.uuid);
    else message.reactions.set(from.uuid, emoji);
    const at = this.#deps.world.nextTimestamp();
    this.#sayAs(from, message, at, reactionField(emoji ?? before, message, emoji === undefined));
  }

  /** Receipts go from the reader only to the author. */
  receives(from: Person, message: StandingMessage, kind: 'delivery' | 'read' | 'viewed'): void {
    const account = this.#deps.world.accounts.find(({ uuid }) => uuid === message.from.uuid);
    if (account === undefined) throw new Error('test error: a receipt goes to an account of this server');
    if (kind !== 'delivery') message.readBy.add(from.uuid);
    const at = this.#deps.world.nextTimestamp();
    const receiptMessage = {
      when: at,
      isDelivery: kind === 'delivery',
      isRead: kind === 'read',
      isViewed: kind === 'viewed',
      timestamps: [message.timestamp],
    };
    this.#deps.emit(notification(account, { person: from, device: 1 }, at, { receiptMessage }));
  }

  types(from: Person, to?: Group | Person, action: 'STARTED' | 'STOPPED' = 'STARTED'): void {
    const { account, place } = this.#whereOf(from, to);
    const at = this.#deps.world.nextTimestamp();
    const group = 'group' in place ? { groupId: place.group.internalId } : {};
    const typingMessage = { action, timestamp: at, ...group };
    for (const one of this.#audience(account, place, from))
      this.#deps.emit(notification(one, { person: from, device: 1 }, at, { typingMessage }));
  }

  /** Messages here disappear after `seconds`; 0: never. */
  setsTimer(from: Person, seconds: number, to?: Group | Person): void {
    const { account, place } = this.#whereOf(from, to);
    this.#deps.world.setTimer(account, place, seconds);
    const at = this.#deps.world.nextTimestamp();
    // In a group this is a change of the group; in a direct chat it is a special kind of message.
    if ('group' in place) this.#updates(from, account, place);
    else this.#sayAs(from, { account, place, expiresInSeconds: seconds }, at, { isExpirationUpdate: true });
  }

  /** Applies `change` to a group and notifies everyone who is in it before or after, without any text. */
  changesGroup(from: Person, group: Group, change: (group: Group) => void): void {
    const before = [...group.members];
    change(group);
    group.revision += 1;
    const { account, place } = this.#whereOf(from, group);
    this.#updates(from, account, place, before);
  }

  /** Something arrives that signal-cli can't read. */
  sendsUnreadable(from: Person, exception?: Notification['exception'], to?: Person): void {
    const { account } = this.#whereOf(from, to);
    const at = this.#deps.world.nextTimestamp();
    this.#deps.emit({
      exception: exception ?? {
        message: 'org.signal.libsignal.protocol.InvalidMessageException: invalid message',
        type: 'ProtocolInvalidMessageException',
      },
      ...notification(account, { person: from, device: 1 }, at, {}),
    });
  }

  /** Sends any other payload: callMessage, storyMessage, syncMessage … */
  sendsPayload(from: Person, payload: Payload, to?: Person, device = 1): void {
    const { account } = this.#whereOf(from, to);
    const at = this.#deps.world.nextTimestamp();
    this.#deps.emit(notification(account, { person: from, device }, at, payload));
  }

  /** Delivers what an account of this server sent to this server's other accounts in the same place. */
  relays(message: StandingMessage): void {
    const { world } = this.#deps;
    const data = this.#data(message, message.timestamp);
    const others = this.#othersThan(message);
    if (others.length > 0) for (const file of message.attachments) world.attachments.set(file.id, file);
    this.#relay(others, message, message.timestamp, { dataMessage: data });
  }

  relaysEdit(message: StandingMessage, at: number): void {
    const dataMessage = this.#data(message, at);
    const editMessage = { targetSentTimestamp: message.timestamp, dataMessage };
    this.#relay(this.#othersThan(message), message, at, { editMessage });
  }

  relaysDelete(message: StandingMessage, at: number): void {
    const remoteDelete = { timestamp: message.timestamp };
    const data = dataMessage(message.place, at, message.expiresInSeconds, { remoteDelete });
    this.#relay(this.#othersThan(message), message, at, { dataMessage: data });
  }

  #relay(to: readonly Account[], message: StandingMessage, at: number, payload: Payload): void {
    for (const one of to)
      this.#deps.emit(notification(one, { person: message.account, device: 1 }, at, payload));
  }

  #othersThan({ account, place }: StandingMessage): readonly Account[] {
    return this.#audience(account, place, account).filter(({ uuid }) => uuid !== account.uuid);
  }

  #data(message: StandingMessage, at: number) {
    return dataMessage(message.place, at, message.expiresInSeconds, this.#content(message));
  }

  #content(message: StandingMessage, quoted?: StandingMessage) {
    return contentFields(message, (uuid) => this.#deps.world.person(uuid), quoted);
  }

  #updates(from: Person, account: Account, place: Place, before: readonly Person[] = []): void {
    const at = this.#deps.world.nextTimestamp();
    const seconds = this.#deps.world.timer(account, place);
    const data = { ...dataMessage(place, at, seconds, {}), ...groupInfo(place, 'UPDATE') };
    this.#report(from, { account, place }, at, { dataMessage: data }, data, before);
  }

  #say(message: StandingMessage, at: number, fields: Readonly<Record<string, unknown>>, device?: number) {
    this.#sayAs(message.from, message, at, fields, device);
  }

  #sayAs(
    from: Person,
    where: Pick<StandingMessage, 'account' | 'place' | 'expiresInSeconds'>,
    at: number,
    fields: Readonly<Record<string, unknown>>,
    device?: number,
  ): void {
    const data = dataMessage(where.place, at, where.expiresInSeconds, fields);
    this.#report(from, where, at, { dataMessage: data }, data, [], device);
  }

  /** Notifies every account in the place: of something new, or of what its own other device did. */
  #report(
    from: Person,
    where: Pick<StandingMessage, 'account' | 'place'>,
    at: number,
    payload: Payload,
    ownFields: Readonly<Record<string, unknown>>,
    also: readonly Person[] = [],
    device?: number,
  ): void {
    for (const account of this.#audience(where.account, where.place, from, also)) {
      const isOwn = account.uuid === from.uuid;
      const sender = { person: from, device: device ?? 1 };
      const sentMessage = { ...destination(where.place), ...ownFields };
      const news = isOwn ? { syncMessage: { sentMessage } } : payload;
      this.#deps.emit(notification(account, sender, at, news));
    }
  }

  #audience(account: Account, place: Place, from: Person, also: readonly Person[] = []): readonly Account[] {
    const { accounts } = this.#deps.world;
    const people = 'group' in place ? [...place.group.members, ...also] : [account, place.person, from];
    return accounts.filter(({ uuid }) => people.some((person) => person.uuid === uuid));
  }

  /** Returns the account that takes part in the place, and the place as seen from it. */
  #whereOf(from: Person, to: Group | Person | undefined): { account: Account; place: Place } {
    const { accounts } = this.#deps.world;
    const [first] = accounts;
    if (first === undefined) throw new Error('test error: the server has no account');
    const own = accounts.find(({ uuid }) => uuid === from.uuid);
    if (to !== undefined && 'internalId' in to) {
      const member = accounts.find(({ uuid }) => to.members.some((person) => person.uuid === uuid));
      return { account: own ?? member ?? first, place: { group: to } };
    }
    if (own !== undefined) return { account: own, place: { person: to ?? own } };
    const account = accounts.find(({ uuid }) => uuid === to?.uuid) ?? first;
    return { account, place: { person: from } };
  }
}

/** Writes mentions as a client does: one U+FFFC for each, with its position. */
function withMentions(text: string, people: readonly Person[]) {
  const mentions: MentionRange[] = [];
  let written = text;
  for (;;) {
    const found = people
      .map((person) => ({ person, at: written.indexOf(`@${person.name}`) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at)[0];
    if (found === undefined) return { text: written, mentions };
    const { person, at } = found;
    written = `${written.slice(0, at)}\uFFFC${written.slice(at + person.name.length + 1)}`;
    mentions.push({ uuid: person.uuid, start: at, length: 1 });
  }
}

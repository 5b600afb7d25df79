/**
 * signal-cli-rest-api as its callers see it, with the controls by which a test drives the other side.
 *
 *   const server = await startSignalServer({ mode: 'json-rpc' });   // or 'normal', 'native'
 *   server.url, server.number, server.account                      // the bot's account
 *   const ada = server.world.addPerson({ name: 'Ada' });           // number: null hides it
 *   const team = server.world.addGroup({ name: 'Team', members: [ada, server.account] });
 *   server.webhookUrl = 'http://127.0.0.1:…';                      // RECEIVE_WEBHOOK_URL, json-rpc only
 *   const message = server.people.writes({ from: ada, to: team, text: '@Parley hi', mentioning: [server.account] });
 *   server.people.edits | deletes | reacts | types | receives | setsTimer | changesGroup | sendsUnreadable
 *   server.people.writes({ from: server.account, to: ada, … })     // the owner, on another device
 *   server.people.writes({ from: server.account, … })              // a note to self
 *   server.inOneWrite(() => …)                                     // a burst; a socket misses most of it
 *   server.arranged(() => …, (arrived) => …), server.redeliver(2)  // out of order, again
 *   server.fault({ kind: 'drop-answer' }, { path: '/v2/send' });   // see faults.ts
 *   server.messages(ada | team), server.lines(ada | team), server.calls, server.refusals, await server.waitFor(() => …)
 *   server.freezeSockets(), stopDaemon(), startDaemon(), goAway(), comeBack(), close()
 */

import { patienceMs } from '../../support/patience.ts';
import { Daemon, type WebhookPost } from './daemon.ts';
import { type Fault, type FaultMatch, Faults } from './faults.ts';
import { Front } from './front.ts';
import { Journal } from './journal.ts';
import { Mailbox } from './mailbox.ts';
import { People } from './people.ts';
import type { Platform } from './platform.ts';
import { Sockets } from './sockets.ts';
import type { Account, Call, Group, Mode, Notification, Person, Refusal, StandingMessage } from './types.ts';
import { shown } from './view.ts';
import { World } from './world.ts';

export type SignalServerOptions = {
  readonly mode?: Mode;
  /** `head` answers sends with an array and supports `***`. */
  readonly release?: '0.100' | 'head';
  /** The first account; more with `world.addAccount`. */
  readonly account?: Partial<Account>;
  /** There is no account yet: `finishLink` creates one. */
  readonly isUnlinked?: boolean;
  readonly webhookUrl?: string;
  readonly now?: () => number;
  /** How long a second of a poll's requested wait lasts, ms. Default: 1000. */
  readonly secondMs?: number;
  /** People's devices confirm the delivery of sends. Default: true. */
  readonly hasDeliveryReceipts?: boolean;
};

/** Starts the server on its own loopback port. */
export async function startSignalServer(options: SignalServerOptions = {}): Promise<SignalServer> {
  const server = new SignalServer(options);
  await server.comeBack();
  return server;
}

export class SignalServer {
  readonly world: World;
  readonly people: People;
  /** Everything that has arrived for the accounts. */
  readonly notifications: Notification[] = [];
  readonly platform: Platform;
  readonly #journal: Journal;
  readonly #daemon: Daemon;
  readonly #sockets: Sockets;
  readonly #front: Front;
  readonly #faults = new Faults();
  readonly #mailboxes = new Map<string, Mailbox>();
  /** What arrives while the container is down. */
  #heldBySignal: Notification[] = [];
  /** The notifications that `arranged` is holding back to reorder them. */
  #holding: Notification[] | undefined;

  constructor(options: SignalServerOptions) {
    const now = options.now ?? Date.now;
    const journal = new Journal(now);
    this.#journal = journal;
    this.world = new World(now);
    if (!options.isUnlinked) this.world.addAccount({ number: '+15550000001', ...options.account });
    this.people = new People({ world: this.world, emit: (one) => this.emit(one) });
    this.platform = preparePlatform(options, { now, journal, world: this.world, people: this.people });
    this.#daemon = new Daemon(() => journal.changed());
    this.#sockets = new Sockets({
      listeners: this.#daemon.listeners,
      onChange: () => journal.changed(),
      onMisuse: (why) => journal.refuse(undefined, why),
    });
    this.#front = new Front({
      platform: this.platform,
      journal,
      faults: this.#faults,
      daemon: this.#daemon,
      sockets: this.#sockets,
      mailbox: (number) => this.mailbox(number),
      firstNumber: () => this.number,
    });
    if (options.webhookUrl !== undefined) this.webhookUrl = options.webhookUrl;
  }

  /** Every call, in order of arrival. */
  get calls(): readonly Call[] {
    return this.#journal.calls;
  }

  /** Calls that were wrong, whether or not they were refused; injected faults aren't among them. */
  get refusals(): readonly Refusal[] {
    return this.#journal.refusals;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#front.door.port}`;
  }

  get account(): Account {
    const [first] = this.world.accounts;
    if (first === undefined) throw new Error('test error: the server has no account');
    return first;
  }

  get number(): string {
    return this.account.number;
  }

  get webhookUrl(): string | undefined {
    return this.#daemon.webhookUrl;
  }

  set webhookUrl(url: string | undefined) {
    if (url !== undefined && this.platform.mode !== 'json-rpc')
      throw new Error('test error: the real server does not start with a webhook in this mode');
    this.#daemon.webhookUrl = url;
  }

  /** Every POST to the webhook; `status` is undefined while it waits, and if there was no answer. */
  get posts(): readonly WebhookPost[] {
    return this.#daemon.posts;
  }

  get openSockets(): number {
    return this.#sockets.count;
  }

  /** Accepted sends, oldest first. */
  get sent(): readonly Call[] {
    return this.calls.filter(({ path, timestamp }) => path === '/v2/send' && timestamp !== undefined);
  }

  /** Returns what is in a conversation of the first account now, oldest first, without deleted messages. */
  messages(where: Group | Person, account = this.account): readonly StandingMessage[] {
    const place = 'internalId' in where ? { group: where } : { person: where };
    return this.world.messages(account, place).filter(({ isDeleted }) => !isDeleted);
  }

  /** Returns the same, each message as a person sees it: `Ada: hi <b>there</b>`. See view.ts. */
  lines(where: Group | Person): readonly string[] {
    return this.messages(where).map((one) => `${one.from.name}: ${shown(this.world, one)}`);
  }

  /** Returns those messages that calls sent. */
  botMessages(where: Group | Person): readonly StandingMessage[] {
    return this.messages(where).filter(({ isByCall }) => isByCall);
  }

  /** Returns the messages waiting on Signal's server to be fetched (normal, native). */
  mailbox(number = this.number): Mailbox {
    const known = this.#mailboxes.get(number);
    if (known !== undefined) return known;
    const made = new Mailbox();
    this.#mailboxes.set(number, made);
    return made;
  }

  /** Delivers a notification to an account, well formed or not. */
  emit(notification: Notification): void {
    this.notifications.push(notification);
    this.#route(notification);
  }

  /** Delivers what people do in `act` in the order that `arrange` returns. */
  arranged(act: () => void, arrange: (arrived: readonly Notification[]) => readonly Notification[]): void {
    const held: Notification[] = [];
    this.#holding = held;
    act();
    this.#holding = undefined;
    for (const one of arrange(held)) this.#route(one);
  }

  /** Delivers the last `count` notifications once more. */
  redeliver(count: number): void {
    for (const one of this.notifications.slice(-count)) this.#route(one);
  }

  /** Delivers what people do in `act` all at once, as after signal-cli has reconnected. */
  inOneWrite(act: () => void): void {
    this.#daemon.inOneWrite(act);
  }

  fault(fault: Fault, match: FaultMatch = {}): void {
    this.#faults.add(fault, match);
  }

  clearFaults(): void {
    this.#faults.clear();
  }

  /** Refuses sends until a captcha is solved for one of the tokens. */
  challenge(...tokens: readonly string[]): void {
    this.platform.challenges.set(this.number, tokens);
  }

  /** The owner scans the picture of the last link, which adds the account. */
  finishLink(account: Partial<Account> & { readonly number: string }): Account {
    const link = this.platform.links.at(-1);
    if (link === undefined || link.isUsed) throw new Error('test error: no link waits to be scanned');
    link.isUsed = true;
    return this.world.addAccount(account);
  }

  freezeSockets(): void {
    this.#sockets.freeze();
  }

  sendErrorFrame(error: string): void {
    this.#sockets.sendError(error);
  }

  /** Stops signal-cli while the server keeps running. `fate`: what happens to messages meanwhile. */
  stopDaemon(fate: 'lost' | 'burst' = 'lost'): void {
    this.#daemon.stop(fate);
  }

  startDaemon(): void {
    this.#daemon.start();
  }

  /** Cuts every connection and refuses new ones. Signal's server stores what arrives. */
  async goAway(): Promise<void> {
    for (const mailbox of this.#mailboxes.values()) mailbox.interrupt();
    await this.#front.door.shut();
  }

  /** Listens again on the same port; in json-rpc mode stored messages come immediately, received or not. */
  async comeBack(): Promise<void> {
    await this.#front.door.open();
    const held = this.#heldBySignal.splice(0);
    if (held.length > 0) this.inOneWrite(() => held.forEach((one) => void this.#daemon.emit(one)));
  }

  async close(): Promise<void> {
    await this.goAway();
  }

  /** Resolves with the first value of `probe` that isn't undefined or false. Rejects after `deadlineMs`. */
  waitFor<T>(probe: () => T | undefined | false, deadlineMs = patienceMs): Promise<T> {
    return this.#journal.waitFor(probe, deadlineMs);
  }

  #route(notification: Notification): void {
    if (this.#holding !== undefined) this.#holding.push(notification);
    else if (this.platform.mode !== 'json-rpc') this.mailbox(notification.account).add(notification);
    else if (this.#front.door.isOpen) this.#daemon.emit(notification);
    else this.#heldBySignal.push(notification);
    this.#journal.changed();
  }
}

type Parts = {
  readonly now: () => number;
  readonly journal: Journal;
  readonly world: World;
  readonly people: People;
};

function preparePlatform(options: SignalServerOptions, { now, journal, world, people }: Parts): Platform {
  const release = options.release ?? '0.100';
  return {
    mode: options.mode ?? 'json-rpc',
    release,
    version: release === 'head' ? '0.100-head' : '0.100',
    world,
    people,
    now,
    typing: [],
    challenges: new Map(),
    captchas: [],
    links: [],
    unregistered: new Set(),
    hasDeliveryReceipts: options.hasDeliveryReceipts ?? true,
    secondMs: options.secondMs ?? 1000,
    afterwards: [],
    logLevel: 'info',
    note: (why) => journal.refuse(journal.current, why),
  };
}

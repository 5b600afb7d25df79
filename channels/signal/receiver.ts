/**
 * Everything about receiving: the webhook and its accompanying socket, or polls, and the path of their messages into
 * the store. The webhook is mounted as soon as the adapter exists: messages that it gets before receiving starts, or
 * after it has ended, stay in the spool until it starts again.
 */
import { join } from 'node:path';
import { writeRaw } from '#channel-kit/event-mapping.ts';
import { createYielder } from '#channel-kit/take-turns.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { ChannelDeps, Intake } from '#contracts/channel.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { Mode, SignalApi } from './api.ts';
import { BackgroundCalls } from './background-calls.ts';
import type { SignalConfig } from './config.ts';
import { DurableIntake } from './durable-intake.ts';
import { notificationSchema } from './envelope-schema.ts';
import type { ChannelHealth } from './failures.ts';
import { boundFrame, parseFrame } from './frame.ts';
import { GroupBook } from './groups.ts';
import type { Bot, MessageRef } from './ids.ts';
import { joinBatches, type ReadBatch, readFrames } from './inbound.ts';
import { LastSeen, Losses } from './last-seen.ts';
import { attachmentPath } from './media.ts';
import { startPoll } from './poll.ts';
import type { RecentMessages } from './recent.ts';
import { startSocket } from './socket.ts';
import { Spool, type SpoolEntry } from './spool.ts';
import { mountWebhook } from './webhook.ts';

export type Connection = { readonly bot: Bot; readonly mode: Mode };

export type ReceiverDeps = Pick<ChannelDeps, 'log' | 'clock' | 'dataDir' | 'routes'> & {
  readonly config: SignalConfig;
  readonly api: SignalApi;
  readonly recent: RecentMessages;
  readonly health: ChannelHealth;
  /** Undefined until the account is known. */
  connection(): Connection | undefined;
  /** Called when the server runs in another mode than it reported. */
  onMode(mode: Mode): void;
};

/** Well below the free space at which the intake stops, so that confirmed messages still fit on a full disk. */
const spoolMaxBytes = 64 * 1024 * 1024;
const askServerEveryMs = 60_000;
/** A server that was changed may leave every connection open and send nothing more. */
const askAnywayEveryMs = 3_600_000;
/** Shorter, because messages of an unknown account wait for the answer. */
const askAboutEveryMs = 5_000;
/** How soon a group change that the store didn't accept is tried again, ms. */
const passAgainMs = 5_000;
/** How long the webhook has, ms, to deliver a message that the socket has delivered too. */
const graceMs = 2000;

const addressed = notificationSchema.pick({ account: true });

export class Receiver {
  readonly #deps: ReceiverDeps;
  readonly hasWebhook: boolean;
  readonly #durable: DurableIntake;
  readonly #groups: GroupBook;
  readonly #background: BackgroundCalls;
  readonly lastSeen: LastSeen;
  readonly #losses: Losses;
  readonly #inGrace = new Set<Promise<void>>();
  /** Stores group changes one after another, in order. */
  #passing = Promise.resolve();
  #intake: Intake | undefined;
  #isFirstStart = true;
  #askedAt = 0;
  #askAnywayAt = 0;
  /** Other accounts, whose messages the webhook receives too. */
  readonly #others = new Set<string>();
  #stopping = new AbortController();
  #source: { stop(): Promise<void> } | undefined;
  #alive: Promise<void> | undefined;

  constructor(deps: ReceiverDeps) {
    const { log, clock, dataDir, health, api } = deps;
    this.#deps = deps;
    this.#background = new BackgroundCalls(log);
    this.lastSeen = new LastSeen(join(dataDir, 'last-seen.json'), clock);
    this.#losses = new Losses({
      lastSeen: this.lastSeen,
      read: (entries) => this.#read(entries),
      tell: (gap) => this.#intake?.gap(gap),
    });
    this.#groups = new GroupBook({
      list: (signal) => api.groups(this.#bot().number, signal),
      bot: () => this.#bot(),
      now: () => clock.now(),
      onMembership: (envelope) => {
        const { signal } = this.#stopping;
        this.#passing = this.#passing.then(() => this.#pass(envelope, signal));
      },
    });
    this.#durable = new DurableIntake({
      spool: new Spool(dataDir, spoolMaxBytes),
      clock,
      log,
      read: (entries) => this.#read(entries),
      onSafe: (batch, acceptances) => this.#onSafe(batch, acceptances),
      onStoreTrouble: (problem) =>
        health.set(
          'store',
          problem && `messages are kept in a file until the store accepts them: ${problem}`,
        ),
      onLoss: (reason) => health.set('loss', reason && `messages can neither be stored nor kept: ${reason}`),
      onTakenOver: () => this.#stopping.abort(),
    });
    this.hasWebhook = this.#mount();
  }

  /** Once aborted, it waits for no answer and only needs to be stopped. */
  async start(intake: Intake, { mode, bot }: Connection, signal: AbortSignal): Promise<void> {
    const { health } = this.#deps;
    this.#stopping = new AbortController();
    this.#intake = intake;
    health.tellTo((problem) => intake.trouble(problem));
    await this.#tellDowntime(mode);
    await this.#durable.open(intake);
    this.#look();
    this.#askAnywayAt = this.#deps.clock.now() + askAnywayEveryMs;
    this.#alive = this.lastSeen.keep(this.#stopping.signal, async () => {
      this.#askAnyway(mode);
      await this.#durable.look();
    });
    if (signal.aborted) return;
    this.#source = mode === 'polling' ? this.#poll(bot) : await this.#listen(bot, signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#source?.stop();
    this.#source = undefined;
    await Promise.all(this.#inGrace);
    await this.#durable.close();
    await this.#background.stop();
    this.#deps.health.tellTo(undefined);
    if (this.#alive === undefined) return;
    await this.#alive;
    this.#alive = undefined;
    this.lastSeen.note('aliveAt');
    await this.lastSeen.write();
  }

  #bot(): Bot {
    const known = this.#deps.connection();
    if (known === undefined) throw new Error('signal: used before identify()');
    return known.bot;
  }

  #mount(): boolean {
    const { routes, config, log, clock } = this.#deps;
    if (routes === undefined || config.webhookSecret === undefined) return false;
    mountWebhook({
      routes,
      secret: config.webhookSecret,
      log,
      onCalled: () => this.lastSeen.note('webhookAt'),
      take: (raw) => this.#durable.take({ at: clock.now(), raw: this.#bound(raw) }),
      onLost: (reason, raw) => this.#losses.note(reason, { at: clock.now(), raw: raw && this.#bound(raw) }),
    });
    return true;
  }

  /** Reports a gap: only normal and native mode leave messages on Signal's server while nothing receives them. */
  async #tellDowntime(mode: Mode): Promise<void> {
    const { aliveAt } = await this.lastSeen.read();
    // While this process runs, the webhook keeps what it receives.
    const isCovered = this.hasWebhook && !this.#isFirstStart;
    this.#isFirstStart = false;
    if (mode === 'polling' || isCovered || aliveAt === undefined) return;
    const reason = 'signal-cli-rest-api keeps nothing in json-rpc mode, and Parley wasn’t running';
    this.#intake?.gap({ since: aliveAt, code: 'not-kept', reason });
  }

  #poll(bot: Bot) {
    const { api, config, clock, log, health, dataDir } = this.#deps;
    return startPoll({
      api,
      number: bot.number,
      config,
      clock,
      log,
      markPath: join(dataDir, 'polling'),
      heldUntil: this.#intake?.heldUntil,
      isClear: () => this.#durable.isClear,
      take: (all) =>
        this.#durable.take(...all.map((one) => ({ at: clock.now(), raw: this.#bound(writeRaw(one)) }))),
      onTrouble: (problem) => {
        health.set('connection', problem);
        if (problem !== undefined) this.#askServer('polling');
      },
      onGap: (gap) => this.#intake?.gap(gap),
    });
  }

  /** Resolves when the socket is open, or couldn't be opened immediately. */
  async #listen(bot: Bot, signal: AbortSignal) {
    const { config, clock, log, health } = this.#deps;
    if (!this.hasWebhook) log.warn({}, 'signal.webhook-not-configured');
    const first = Promise.withResolvers<void>();
    let downSince: number | undefined;
    const socket = startSocket({
      url: `${config.apiUrl.replace(/^http/, 'ws')}/v1/receive/${encodeURIComponent(bot.number)}`,
      clock,
      heartbeatMs: config.heartbeatMs,
      onFrame: (text) => this.#onFrame(text),
      onOpen: () => {
        health.set('connection', undefined);
        // With the webhook the socket is only a supplement.
        const reason = 'the WebSocket was down, and there is no webhook';
        if (downSince !== undefined && !this.hasWebhook)
          this.#intake?.gap({ since: downSince, code: 'cut-off', reason });
        // A group change may have been missed.
        if (downSince !== undefined) this.#look();
        downSince = undefined;
        first.resolve();
      },
      onDown: (reason, lastHeardAt, isDoubted) => {
        log.warn({ reason }, 'signal.socket-lost');
        downSince ??= lastHeardAt;
        // A connection that had been open is usually back in a moment.
        if (lastHeardAt === undefined || isDoubted)
          health.set('connection', `signal-cli-rest-api: ${reason}`);
        if (isDoubted) this.#askServer('json-rpc');
        first.resolve();
      },
    });
    const until = AbortSignal.any([signal, this.#stopping.signal]);
    until.addEventListener('abort', () => first.resolve(), { once: true });
    if (!until.aborted) await first.promise;
    return socket;
  }

  /**
   * Checks the server: one that was restarted in the other mode, or whose account has a new number, refuses Parley for
   * good. Everything about it is then requested again.
   */
  #askServer(used: Mode, stranger?: string): void {
    const { api, clock, onMode } = this.#deps;
    const now = clock.now();
    const everyMs = stranger === undefined ? askServerEveryMs : askAboutEveryMs;
    if (now >= this.#askedAt && now < this.#askedAt + everyMs) return;
    this.#askedAt = now;
    this.#askAnywayAt = now + askAnywayEveryMs;
    this.#background.ask('server', async (signal) => {
      const { mode } = await api.about(signal);
      if (signal.aborted) return;
      if (mode !== used) {
        onMode(mode);
        return this.#changed(`signal-cli-rest-api was restarted in ${mode} mode`);
      }
      const { number } = this.#bot();
      const accounts = await api.accounts(signal);
      // A server without any account is still starting.
      if (signal.aborted || accounts.length === 0) return;
      if (accounts.includes(number)) {
        for (const account of [...accounts, ...(stranger ? [stranger] : [])]) this.#others.add(account);
        return;
      }
      this.#changed(`signal-cli-rest-api no longer has the account ${number}`);
    });
  }

  #changed(detail: string): void {
    this.#intake?.trouble({ kind: 'unreachable', code: 'server-changed', detail, isOver: true });
  }

  #askAnyway(mode: Mode): void {
    if (this.#deps.clock.now() >= this.#askAnywayAt) this.#askServer(mode);
  }

  #onFrame(raw: string): void {
    const entry: SpoolEntry = { at: this.#deps.clock.now(), raw: this.#bound(raw) };
    const taking = this.#takeFrame(entry).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      this.#deps.log.error({ reason }, 'signal.message-lost');
      return this.#losses.note(reason, entry);
    });
    this.#inGrace.add(taking);
    void taking.finally(() => this.#inGrace.delete(taking));
  }

  #bound(raw: string): string {
    return boundFrame(raw, (problem) => this.#deps.log.warn({ problem }, 'signal.event-unparsed'));
  }

  /** A webhook delivers everything, so the socket's copy of a message is only needed if the webhook failed. */
  async #takeFrame(entry: SpoolEntry): Promise<void> {
    const { clock, log, recent } = this.#deps;
    const frame = parseFrame(entry.raw);
    if (frame.kind === 'error') {
      log.warn({ error: frame.error }, 'signal.error-received');
      return;
    }
    if (!this.hasWebhook) return this.#durable.take(entry);
    await clock.wait(graceMs, this.#stopping.signal);
    await this.#durable.takeIfMissing(entry, ({ events, unreadable }) => {
      const isHeard = [...events, ...unreadable].every(({ eventKey }) => recent.hasHeard(eventKey));
      if (!isHeard) log.warn({}, 'signal.webhook-missed');
      return !isHeard;
    });
  }

  /** Reads entries, letting other work run between two messages, however large they are. */
  async #read(entries: readonly SpoolEntry[]): Promise<ReadBatch | undefined> {
    const { recent } = this.#deps;
    const { bot, mode } = this.#deps.connection() ?? {};
    if (bot === undefined || mode === undefined) return undefined;
    const known = {
      bot,
      nameOf: (aci: string) => recent.nameOf(aci),
      originalOf: (ref: MessageRef) => recent.originalOf(ref),
      learn: (envelope: InboundEnvelope) => recent.learn(envelope),
      groupOf: (id: string) => this.#groups.groupOf(id),
    };
    const turn = createYielder();
    const batches: ReadBatch[] = [];
    for (const { at, raw } of entries) {
      const frame = parseFrame(raw);
      const notification = frame.kind === 'notification' ? frame.value : raw;
      const account = accountIn(notification);
      // It may be this account under another number: the server is asked, and the message is kept until it answers.
      if (account !== undefined && account !== bot.number && !this.#others.has(account)) {
        if (this.#intake !== undefined) this.#askServer(mode, account);
        return undefined;
      }
      batches.push(readFrames([notification], known, [at]));
      await turn();
    }
    return joinBatches(batches);
  }

  #onSafe(batch: ReadBatch, acceptances: readonly Acceptance[] | undefined): void {
    const { events, unreadable, changedGroups } = batch;
    this.#deps.recent.hear([...events, ...unreadable]);
    if (this.#intake !== undefined && this.#groups.needsLook(events, changedGroups)) this.#look();
    for (const [index, acceptance] of (acceptances ?? []).entries()) {
      const envelope = events[index];
      if (envelope !== undefined) this.#after(envelope, acceptance);
    }
  }

  #look(): void {
    this.#background.ask('groups', (signal) => this.#groups.look(signal));
  }

  /** Retries until a group change is stored, because nothing reports it again. */
  async #pass(envelope: InboundEnvelope, signal: AbortSignal): Promise<void> {
    const batch = { events: [envelope], unreadable: [], changedGroups: [] };
    while (!signal.aborted && !(await this.#durable.pass(batch)))
      await this.#deps.clock.wait(passAgainMs, signal);
  }

  #after({ event, sender, sentAt }: InboundEnvelope, acceptance: Acceptance): void {
    const { config, api } = this.#deps;
    const { aci, number } = this.#bot();
    if (event.kind !== 'message') return;
    // The server keeps files forever if nobody deletes them.
    const files = [...event.attachments, ...(event.quote?.attachments ?? [])];
    for (const ref of files.filter((file) => !isFetchedLater(file, acceptance)))
      this.#background.add('tidy', (signal) => api.send('DELETE', attachmentPath(ref), { signal }));
    const isTaken =
      acceptance.kind === 'accepted' || acceptance.kind === 'command' || acceptance.kind === 'held';
    if (!config.readReceipts || !isTaken || sender.id === aci) return;
    const request = { recipient: sender.id, receipt_type: 'read', timestamp: sentAt } as const;
    this.#background.add('receipt', (signal) =>
      api.call('POST /v1/receipts/{number}', number, { request, signal }),
    );
  }
}

/** Returns the number of the account that a notification is for, if it says so. */
function accountIn(notification: unknown): string | undefined {
  return addressed.safeParse(notification).data?.account;
}

/** Says whether the file is fetched: now, once its sender has access, or with a later message of its group. */
function isFetchedLater({ isViewOnce }: AttachmentRef, acceptance: Acceptance): boolean {
  switch (acceptance.kind) {
    case 'accepted':
    case 'held':
    case 'duplicate':
      return true;
    case 'refused':
      return acceptance.keepsFiles === true;
    case 'ignored':
      // One look wasn't meant for a bot that nobody called.
      return acceptance.keepsFiles === true && !isViewOnce;
    case 'command':
    case 'noted':
    case 'pressed':
      return false;
    default:
      return acceptance satisfies never;
  }
}

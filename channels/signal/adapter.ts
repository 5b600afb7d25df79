import { join } from 'node:path';
import { failed } from '#channel-kit/send-result.ts';
import { startAndStop } from '#channel-kit/start-and-stop.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { BotAccount, ChannelAdapter, ChannelDeps, Intake } from '#contracts/channel.ts';
import type {
  ChecksAbility,
  LoginAbility,
  MediaAbility,
  TypingAbility,
} from '#contracts/channel-abilities.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Outbound, SendResult } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { SignalApi } from './api.ts';
import { checkSignal } from './checks.ts';
import type { SignalConfig } from './config.ts';
import { type Answer, ChannelHealth, faultOf, refused, sentAnyway } from './failures.ts';
import { type AciSearch, confirmAci, findAci, findNumber } from './identity.ts';
import { botOf, recipientOf } from './ids.ts';
import { linkDevice } from './login.ts';
import { attachmentPath, bodyWithFiles, fetchMedia, filesProblem } from './media.ts';
import { type Call, readSent, toCall } from './outbound.ts';
import { type Connection, Receiver } from './receiver.ts';
import { RecentMessages } from './recent.ts';

/** How often the server is asked for an ACI that it hasn't confirmed, ms. */
const confirmEveryMs = 60_000;
/** Signal shows the typing indicator for 15 s, so it is renewed earlier, ms. */
const typingRefreshMs = 10_000;

/** Holds the connection to one account of a signal-cli-rest-api. */
export class SignalAdapter implements ChannelAdapter {
  readonly #config: SignalConfig;
  readonly #deps: ChannelDeps;
  readonly #api: SignalApi;
  readonly #recent = new RecentMessages();
  readonly #health = new ChannelHealth();
  readonly #receiver: Receiver;
  readonly #receiving = startAndStop({
    begin: (intake, signal) => this.#begin(intake, signal),
    end: () => this.#end(),
  });
  readonly start = this.#receiving.start;
  readonly stop = this.#receiving.stop;
  #connection: Connection | undefined;
  #stopping = new AbortController();
  #confirming: Promise<void> | undefined;

  constructor(config: SignalConfig, deps: ChannelDeps) {
    this.#config = config;
    this.#deps = deps;
    this.#api = new SignalApi(config);
    this.#receiver = new Receiver({
      ...deps,
      config,
      api: this.#api,
      recent: this.#recent,
      health: this.#health,
      connection: () => this.#connection,
      onMode: (mode) => {
        if (this.#connection !== undefined) this.#connection = { ...this.#connection, mode };
      },
    });
  }

  readonly typing: TypingAbility = {
    refreshMs: typingRefreshMs,
    show: (route, signal) => this.#showTyping(route, signal),
  };

  readonly media: MediaAbility = {
    fetch: (ref, maxBytes, signal) => fetchMedia(this.#api, { ref, maxBytes, signal }),
    release: (ref, signal) => this.#release(ref, signal),
  };

  readonly login: LoginAbility = {
    login: (signal) => {
      const { number, name } = this.#config;
      return linkDevice({ api: this.#api, clock: this.#deps.clock, number, deviceName: name }, signal);
    },
  };

  readonly checks: ChecksAbility = {
    check: (signal) =>
      checkSignal(
        {
          api: this.#api,
          number: this.#config.number,
          hasSecret: this.#config.webhookSecret !== undefined,
          seen: () => this.#receiver.lastSeen.read(),
          now: () => this.#deps.clock.now(),
          ownAci: (number) => findAci(this.#searchFor(number), signal),
        },
        signal,
      ),
  };

  async identify(signal: AbortSignal): Promise<BotAccount> {
    const { mode, version } = await this.#api.about(signal);
    const number = await findNumber(this.#api, this.#config, signal);
    const { aci, doubt } = await findAci(this.#searchFor(number), signal);
    this.#health.set('identity', doubt);
    const bot = botOf({ aci, number, name: this.#config.name });
    this.#connection = { bot, mode };
    const { hasWebhook } = this.#receiver;
    this.#deps.log.info({ account: bot.account, mode, version, hasWebhook }, 'signal.identified');
    return { id: bot.account, name: number };
  }

  async #begin(intake: Intake, signal: AbortSignal): Promise<void> {
    await this.#receiver.start(intake, this.#connected(), signal);
    if (this.#health.has('identity')) this.#confirming = this.#confirmIdentity(intake);
  }

  async #end(): Promise<void> {
    this.#stopping.abort();
    await this.#confirming;
    this.#stopping = new AbortController();
    await this.#receiver.stop();
  }

  async send(outbound: Outbound, signal: AbortSignal): Promise<SendResult> {
    if (signal.aborted) return { kind: 'retry', afterMs: 0, reason: 'stopped before it was sent' };
    const { bot } = this.#connected();
    const { content, route } = outbound;
    const quotedText = route.replyTo === undefined ? '' : this.#recent.textOf(route.replyTo);
    const call = toCall(outbound, { bot, quotedText });
    const problem = await problemOf(call);
    if (problem !== undefined) return failed('rejected', problem);
    const result = await this.#perform(call, signal).then(
      (answer) => this.#read(answer, outbound),
      (error: unknown) => faultOf(error, content, signal.aborted),
    );
    if (result.kind !== 'sent')
      this.#deps.log.info(
        { partKey: outbound.key, call: call.kind, result: result.kind },
        'signal.send-failed',
      );
    return result;
  }

  #searchFor(number: string): AciSearch {
    const path = join(this.#deps.dataDir, 'identity.json');
    return { api: this.#api, number, configured: this.#config.aci, path };
  }

  /** Asks until the server confirms the ACI. A different one requires a new start, because it is the account's id. */
  async #confirmIdentity(intake: Intake): Promise<void> {
    const { signal } = this.#stopping;
    const { aci: used, number } = this.#connected().bot;
    for (;;) {
      await this.#deps.clock.wait(confirmEveryMs, signal);
      if (signal.aborted) return;
      const aci = await confirmAci(this.#searchFor(number), signal).catch(() => undefined);
      if (aci === undefined) continue;
      if (aci === used) return this.#health.set('identity', undefined);
      const detail = `Signal now knows ${number} under another identity`;
      return intake.trouble({ kind: 'unreachable', code: 'server-changed', detail, isOver: true });
    }
  }

  #perform(call: Call, signal: AbortSignal): Promise<Answer> {
    const { number } = this.#connected().bot;
    switch (call.kind) {
      case 'send':
        return this.#api.call('POST /v2/send', number, { ...call, signal });
      case 'send-files':
        return this.#api.sendStream(bodyWithFiles(call.request, call.files), signal);
      case 'delete':
        return this.#api.call('DELETE /v1/remote-delete/{number}', number, { ...call, signal });
      case 'react':
        return this.#api.call('POST /v1/reactions/{number}', number, { ...call, signal });
      case 'unreact':
        return this.#api.call('DELETE /v1/reactions/{number}', number, { ...call, signal });
      case 'none':
        return Promise.reject(new ParleyError('internal', 'signal: there is no call to make'));
      default:
        return call satisfies never;
    }
  }

  #read(answer: Answer, outbound: Outbound): SendResult {
    const { bot } = this.#connected();
    const isAccepted = answer.status >= 200 && answer.status < 300;
    const body = isAccepted ? answer.body : sentAnyway(answer);
    if (body === undefined) {
      const { result, challenge } = refused(answer, outbound.content, bot.number);
      if (challenge !== undefined) this.#health.set('captcha', captchaProblem(bot.number, challenge));
      return result;
    }
    this.#health.set('captcha', undefined);
    const { result, missed } = readSent(body, outbound, bot);
    if (missed > 0) this.#deps.log.warn({ partKey: outbound.key, missed }, 'signal.recipients-not-reached');
    return result;
  }

  /** Best effort. In modes where each call starts its own signal-cli, the indicator would delay the answer itself. */
  async #showTyping(route: ReplyRoute, signal: AbortSignal): Promise<void> {
    const { bot, mode } = this.#connected();
    const recipient = recipientOf(route.conversation);
    if (mode !== 'json-rpc' || recipient === undefined) return;
    try {
      const request = { recipient };
      await this.#api.call('PUT /v1/typing-indicator/{number}', bot.number, { request, signal });
    } catch (error) {
      this.#deps.log.debug({ error: String(error) }, 'signal.typing-failed'); // Only an indicator is lost.
    }
  }

  async #release(ref: AttachmentRef, signal: AbortSignal): Promise<void> {
    await this.#api.send('DELETE', attachmentPath(ref), { signal });
  }

  #connected(): Connection {
    if (this.#connection === undefined) throw new ParleyError('internal', 'signal: used before identify()');
    return this.#connection;
  }
}

async function problemOf(call: Call): Promise<string | undefined> {
  if (call.kind === 'none') return call.reason;
  return call.kind === 'send-files' ? filesProblem(call.files) : undefined;
}

function captchaProblem(number: string, token: string): string {
  return `Signal asks for a captcha before more is sent: solve the one at https://signalcaptchas.org/challenge/generate.html, then POST /v1/accounts/${number}/rate-limit-challenge of signal-cli-rest-api with {"challenge_token": "${token}", "captcha": "signalcaptcha://…"}`;
}

import { readFile } from 'node:fs/promises';
import { startAndStop } from '#channel-kit/start-and-stop.ts';
import type { BotAccount, ChannelAdapter, ChannelDeps, Intake } from '#contracts/channel.ts';
import { ParleyError } from '#contracts/errors.ts';
import { accountId } from '#contracts/ids.ts';
import type { Outbound, SendResult } from '#contracts/outbound.ts';
import { sizesOf } from '../../../src/channel-kit/send-result.ts';
import { call } from './api.ts';
import type { ExampleConfig } from './config.ts';
import { callOf, resultOf } from './outbound.ts';
import { startHook } from './receive-hook.ts';
import { startPull } from './receive-pull.ts';
import { startPush } from './receive-push.ts';
import type { Receiver } from './receiver.ts';

/** Manages the connection and nothing else: mapping is in inbound.ts and outbound.ts. */
export class ExampleAdapter implements ChannelAdapter {
  readonly #config: ExampleConfig;
  readonly #deps: ChannelDeps;
  readonly #receiving = startAndStop({
    begin: async (intake, signal) => {
      this.#receiver = await this.#receive(intake, signal);
    },
    end: async () => {
      await this.#receiver?.stop();
      this.#receiver = undefined;
    },
  });
  #account: string | undefined;
  #receiver: Receiver | undefined;

  constructor(config: ExampleConfig, deps: ChannelDeps) {
    this.#config = config;
    this.#deps = deps;
  }

  async identify(signal: AbortSignal): Promise<BotAccount> {
    const end = await call(this.#config, { method: 'GET', path: '/me' }, signal);
    if (end.kind !== 'answer') throw new ParleyError('channel_unavailable', `example: ${end.reason}`);
    if (end.status === 401)
      throw new ParleyError('channel_unauthorised', 'example: the network refused the token');
    // The server is the other half of this example; a real one would need a schema here.
    const { id, name } = end.body as unknown as { readonly id: string; readonly name: string };
    this.#account = id;
    return { id: accountId(id), name };
  }

  start(intake: Intake): Promise<void> {
    return this.#receiving.start(intake);
  }

  stop(): Promise<void> {
    return this.#receiving.stop();
  }

  async send(outbound: Outbound, signal: AbortSignal): Promise<SendResult> {
    const { content } = outbound;
    const [sizeBytes] = (await sizesOf(content)) ?? [];
    const wanted = callOf(outbound, sizeBytes);
    if (wanted.kind === 'rejected')
      return { kind: 'failed', failure: { kind: 'rejected' }, reason: wanted.reason };
    const { file, ...request } = wanted;
    const bytes = file !== undefined && { body: { ...request.body, file: await readFile(file, 'base64') } };
    return resultOf(await call(this.#config, { ...request, ...bytes }, signal), content);
  }

  async #receive(intake: Intake, signal: AbortSignal): Promise<Receiver> {
    const { clock, log, routes } = this.#deps;
    if (this.#account === undefined) throw new ParleyError('internal', 'example: used before identify()');
    const deps = { config: this.#config, account: this.#account, clock, log };
    switch (this.#config.receive) {
      case 'pull':
        return startPull(deps, intake);
      case 'push':
        return startPush(deps, intake, signal);
      case 'hook':
        if (routes === undefined)
          throw new ParleyError('channel_unavailable', 'example: this process serves no webhooks');
        return startHook(deps, intake, routes);
      default:
        return this.#config.receive satisfies never;
    }
  }
}

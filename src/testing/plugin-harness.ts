/**
 * Runs a plugin in a real gateway for its test: real loop, real database, a model that follows a script, and no network but
 * this machine. A plugin imports it as `parley/testing`.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { Intake } from '#contracts/channel.ts';
import { accountId, channelId, conversationId, eventKey, messageId, peerId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import type { PluginApi, PluginDefinition } from '#contracts/plugin.ts';
import { readEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import { startGateway } from '../gateway.ts';
import { pluginProblems } from '../plugin-host/plugin-findings.ts';
import { createScriptedModel, type ScriptedModel } from './scripted-model.ts';

export type HarnessOptions<Config> = {
  readonly plugin: PluginDefinition<Config>;
  /** The plugin's settings, as in the configuration. */
  readonly config?: unknown;
  /** Further settings of parley.config.json. */
  readonly settings?: Readonly<Record<string, unknown>>;
};

export interface PluginHarness extends AsyncDisposable {
  readonly model: ScriptedModel;
  /**
   * Says something in a direct chat; resolves with what Parley sends there until it has nothing more to do. `as`: the
   * owner (default) or somebody else, who is a guest.
   */
  say(text: string, options?: { readonly as?: 'owner' | 'guest' }): Promise<readonly string[]>;
  /** Returns what the tools have answered in the conversation, as the model read it last. */
  toolResults(): readonly string[];
  /** Calls a route of the plugin as the owner; `token: false`: as anybody. */
  request(
    path: string,
    options?: {
      readonly method?: 'GET' | 'POST';
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
      readonly token?: false;
    },
  ): Promise<{ readonly status: number; readonly text: string }>;
  /** Returns what is wrong with the plugin, as the status shows it. */
  problems(): readonly string[];
  /** Returns the log's lines: event and fields. */
  log(): readonly string[];
  stop(): Promise<void>;
}

/** Starts a gateway with only this plugin and the script. Stop it, or declare it with `await using`. */
export async function createPluginHarness<Config>(options: HarnessOptions<Config>): Promise<PluginHarness> {
  const home = await mkdtemp(join(tmpdir(), 'parley-plugin-'));
  const token = randomBytes(24).toString('base64url');
  const { script, provider } = createScriptedModel();
  const chat = createChat();
  const { log, lines } = recordingLog();
  const settings = { ...harnessSettings, ...options.settings };
  await writeFile(join(home, 'parley.config.json'), JSON.stringify(settings));
  const environment = readEnvironment({ PARLEY_DATA_DIR: join(home, 'data'), PARLEY_TOKEN: token });
  const own: PluginDefinition = {
    id: 'harness',
    configSchema: z.unknown(),
    setup: (api) => {
      api.providers.register('script', () => provider);
      chat.register(api);
      return () => undefined;
    },
  };
  const gateway = await startGateway({
    config: loadConfig(environment, home),
    ...{ log, version: 'test' },
    // Its owner has the lanes of the agents' main conversations.
    channels: [
      { id: channelId('local'), localPeer: 'owner', load: () => Promise.reject(new Error('it is off')) },
    ],
    plugins: [
      { definition: own, config: {} },
      { definition: options.plugin as PluginDefinition, config: options.config ?? {}, isOutside: true },
    ],
  });
  await gateway.settled;
  const stop = async () => {
    await gateway.stop();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  };
  return {
    model: script,
    say: (text, { as = 'owner' } = {}) => chat.say(text, as),
    toolResults: () => resultsIn(script),
    request: async (path, { method = 'GET', body, headers = {}, token: hasToken } = {}) => {
      const response = await fetch(`${gateway.url}/plugins/${options.plugin.id}/${path}`, {
        method,
        headers: {
          ...(hasToken !== false && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          'x-parley': '1',
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, text: await response.text() };
    },
    problems: () => pluginProblems(gateway.plugins()).map(({ text }) => text),
    log: () => lines,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

const harnessSettings = {
  port: 0,
  owners: ['harness:owner'],
  access: { dmPolicy: 'open' },
  titles: false,
  joinMs: 0,
  model: 'script/one',
  providers: { script: { kind: 'plugin' } },
  replies: { preview: false },
};

/** A chat network without a network: what is sent is kept for the test. */
function createChat() {
  const sent: string[] = [];
  let intake: Intake | undefined;
  let api: PluginApi | undefined;
  let count = 0;
  const channel = channelId('harness');
  const account = accountId('bot');

  async function say(text: string, as: string): Promise<readonly string[]> {
    if (intake === undefined || api === undefined) throw new Error('the gateway has been stopped');
    const from = sent.length;
    count += 1;
    const id = `${count}`;
    const [acceptance] = await intake.accept({
      events: [
        {
          eventKey: eventKey(`message:${id}`),
          sentAt: Date.now(),
          route: { channel, account, conversation: conversationId(as), replyTo: messageId(id) },
          chat: { kind: 'dm' },
          sender: { id: peerId(as), name: as, isBot: false, isSelf: false },
          event: {
            ...{ kind: 'message', messageId: messageId(id), provenance: 'typed', text, attachments: [] },
            ...{ mentionsBot: false, repliesToBot: false },
          },
        },
      ],
    });
    const { agent } = api;
    const session = acceptance?.kind === 'accepted' ? acceptance.sessionKey : undefined;
    while (session !== undefined && (await agent.isSessionBusy(session))) await delay(10);
    // The answer is stored; only its delivery may be outstanding.
    for (let at = 0; at < 100 && sent.length === from; at++) await delay(10);
    return sent.slice(from);
  }

  function register(given: PluginApi): void {
    api = given;
    given.channels.register({
      id: channel,
      capabilities,
      configSchema: z.unknown(),
      create: () => ({
        identify: async () => ({ id: account, name: 'harness' }),
        start: async (accepting) => {
          intake = accepting;
          accepting.trouble(undefined);
        },
        stop: async () => {
          intake = undefined;
        },
        send: async ({ content, key }) => {
          if (content.kind === 'text') sent.push(content.text.text);
          return { kind: 'sent', receipts: [messageId(key)] };
        },
      }),
    });
  }
  return { register, say };
}

const capabilities = {
  text: { maxLength: 4000 },
  ...{ canReact: false, canQuote: false, canEdit: false, canDelete: false, canPress: false },
  preview: { dm: 'none', group: 'none' },
  previewIntervalMs: { dm: 1000, group: 1000 },
  isSessionBound: false,
  repeatSafeMs: 0,
} as const;

function resultsIn(script: ScriptedModel): readonly string[] {
  const blocks =
    script
      .requests()
      .at(-1)
      ?.messages.flatMap(({ content }): readonly unknown[] => content) ?? [];
  return blocks.flatMap((block) => {
    const { data } = toolResult.safeParse(block);
    return data === undefined ? [] : [data.content];
  });
}

const toolResult = z.object({ type: z.literal('tool_result'), content: z.string() });

function recordingLog(): { readonly log: Log; readonly lines: readonly string[] } {
  const lines: string[] = [];
  const write = (fields: object, event: string) => void lines.push(`${event} ${JSON.stringify(fields)}`);
  const log: Log = { debug: () => undefined, info: write, warn: write, error: write, child: () => log };
  return { log, lines };
}

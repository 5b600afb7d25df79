import type { AgentId } from '#contracts/ids.ts';
import type { BudgetScope, ModelPrices } from '#contracts/model.ts';
import type { EnvFile } from './env-files.ts';
import type { FileSettings } from './schema.ts';
import type { Secret } from './secret.ts';
import type { TextPattern } from './text-pattern.ts';
import type { TranscriberSettings } from './transcriber-schema.ts';
import type { WebhookSettings } from './webhook-schema.ts';

/** The settings of this process: file, environment and defaults, validated, merged and frozen. */
export type Config = DeepReadonly<
  Omit<
    FileSettings,
    | '$schema'
    | 'budgets'
    | 'dataDir'
    | 'providers'
    | 'models'
    | 'model'
    | 'tracing'
    | 'agents'
    | 'defaultAgent'
    | 'bindings'
    | 'channels'
    | 'skills'
    | 'media'
    | 'webhooks'
  >
> & {
  /** Absolute. */
  readonly dataDir: string;
  /** The file that was read; absent when there is none. */
  readonly configPath?: string;
  /** The `.env` files that were read, the one with precedence first. */
  readonly envFiles: readonly EnvFile[];
  /** Settings of the file that a variable overrides with a different value. */
  readonly hiddenSettings: readonly HiddenSetting[];
  /** Names of Parley's own variables that are set, from the environment or a file. */
  readonly variables: readonly string[];
  /** PARLEY_TOKEN. If absent, the gateway creates one and keeps it in the data folder. */
  readonly token?: Secret;
  /** A redis:// or rediss:// address, or the absolute path of a unix socket. Absent: a private server. */
  readonly redisUrl?: Secret;
  /** A postgres:// address. Absent: SQLite in the data folder. */
  readonly databaseUrl?: Secret;
  readonly providers: Readonly<Record<string, ProviderSettings>>;
  /** By alias. */
  readonly models: Readonly<Record<string, ModelSettings>>;
  /** Name of the model that answers by default: an alias, or `provider/id`. */
  readonly model: string;
  /** Where spans are sent. Without an endpoint, none are created. */
  readonly tracing: { readonly endpoint?: string; readonly headers: Readonly<Record<string, Secret>> };
  /** Micro-dollars. */
  readonly budgets: Readonly<Partial<Record<BudgetScope, number>>>;
  /** At least one. */
  readonly agents: readonly AgentSettings[];
  readonly defaultAgent: AgentId;
  readonly bindings: readonly Binding[];
  /** Variables of skills with their values, by skill; those that aren't set are absent. */
  readonly skills: { readonly environment: Readonly<Record<string, Readonly<Record<string, Secret>>>> };
  readonly media: Omit<FileSettings['media'], 'transcriber'> & { readonly transcriber?: TranscriberSettings };
  readonly webhooks: Readonly<Record<string, WebhookSettings>>;
  /** `groups.mentionPatterns`, compiled. */
  readonly mentionMatchers: readonly TextPattern[];
  readonly channels: {
    readonly telegram: ChannelSettings & { readonly token?: Secret; readonly apiRoot?: string };
    readonly discord: ChannelSettings & { readonly token?: Secret; readonly apiBase?: string };
    readonly signal: ChannelSettings & {
      readonly apiUrl?: string;
      readonly number?: string;
      readonly webhookSecret?: Secret;
    };
    readonly web: ChannelSettings;
    readonly terminal: ChannelSettings;
  };
};

/** A setting of the file that is overridden, such as `channels.signal.number`, and the variable that overrides it. */
export type HiddenSetting = { readonly setting: string; readonly by: string };

/** A server of models. */
export type ProviderSettings = {
  readonly kind: 'anthropic' | 'openai' | 'demo' | 'plugin';
  /** In the order in which they are tried. */
  readonly apiKeys: readonly Secret[];
  /** The variable of its keys. */
  readonly keysEnv: string;
  readonly baseUrl?: string;
  /** Sent with every request to this provider only. */
  readonly headers?: Readonly<Record<string, Secret>>;
  /** The variable that it needs but isn't set, so that the provider can't be used. */
  readonly needs?: string;
};

/** One model at its provider; `window`, its context window, is absent if Parley knows it. */
export type ModelSettings = DeepReadonly<Omit<FileSettings['models'][string], 'prices'>> & {
  /** Micro-dollars per million tokens; absent: the list prices. */
  readonly prices?: ModelPrices;
};

type AgentInFile = FileSettings['agents'][number];

/** One agent, validated, with its paths resolved. */
export type AgentSettings = DeepReadonly<Omit<AgentInFile, 'id' | 'name' | 'workspace' | 'budgets'>> & {
  readonly id: AgentId;
  readonly name: string;
  /** Absolute. */
  readonly workspace: string;
  /** Micro-dollars, replacing `Config.budgets`. */
  readonly budgets?: Readonly<Partial<Record<Exclude<BudgetScope, 'gateway'>, number>>>;
};

/** A rule for an agent's calls of one tool. */
export type CallRule = NonNullable<AgentSettings['tools']['rules']>[number];

/** Routes messages that match every given field to an agent; the most specific binding wins. */
export type Binding = DeepReadonly<Omit<FileSettings['bindings'][number], 'agent'>> & {
  readonly agent: AgentId;
};

/**
 * Core's view of a channel's settings. The rest belongs to the channel: pass it through `revealSettings` to the
 * channel's schema.
 */
export type ChannelSettings = {
  readonly enabled: boolean;
  /** Further accounts of the network by their configured names, each with all of its settings. */
  readonly accounts?: Readonly<Record<string, ChannelSettings>>;
  /** The variable that an account needs but isn't set. */
  readonly needs?: string;
  readonly [setting: string]: unknown;
};

export type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

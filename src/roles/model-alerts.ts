import type { ChannelEntry } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { configuredAccounts } from '../channel-host/configured-accounts.ts';
import type { Config } from '../config/config.ts';
import { namedModels } from '../config/model-settings.ts';
import { hookedCalls } from '../hooks/hooked-calls.ts';
import type { HooksDeps } from '../hooks/hooks.ts';
import { type ConfiguredModel, configuredModel } from '../models/models.ts';
import type { CallObserver } from '../models/observers/call-observer.ts';
import { openObservers } from '../models/observers/open-observers.ts';
import type { FindPluginProvider } from '../models/plugin-provider.ts';
import { type KeyLabel, type KeyNote, labelKey } from '../models/provider-options.ts';
import { type AlertName, isAlertOpen, raiseAlert, resolveAlert } from '../store/alerts/alert.ts';
import type { Store } from '../store/base/command.ts';
import { routeOfKey } from '../store/base/keys.ts';
import type { GatewayOptions, StageDeps } from './stage-deps.ts';

export type KeyAlertsDeps = {
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly log: Log;
  readonly config: Pick<Config, 'providers'>;
};

/** The problem by which the owner's text is chosen. */
type KeyProblem = {
  readonly problem: 'key' | 'credit' | 'allowance' | 'address' | 'model';
  readonly reason: string;
};

/**
 * Alerts the owner while a provider rejects a key or its account, while an allowance is used up for longer than a call
 * waits, while another program answers at the provider's address, and while a model is denied or unknown. An answer from
 * another model or with another key, such as a fallback, doesn't end these alerts. Only changes are stored; if the store
 * fails, the next call tries again.
 */
export function createKeyAlerts({ store, log, config }: KeyAlertsDeps): {
  readonly observer: CallObserver;
  noteKey(provider: string, note: KeyNote): void;
} {
  const noted = new Map<string, KeyProblem['problem'] | 'none'>();
  /** One write at a time: if an alert's end overtook its beginning, it would end nothing. */
  let noting = Promise.resolve();

  const note = async (subject: string, values: KeyValues | undefined) => {
    const alert = { kind: 'model-key', subject } as const;
    if (values !== undefined) {
      await store.write(raiseAlert, { ...alert, values });
      log.warn({ subject, problem: values.problem, reason: values.reason }, 'model-key.refused');
    } else if (await store.read(isAlertOpen, alert)) await store.write(resolveAlert, alert);
  };
  const see = (subject: string, values?: KeyValues) => {
    const problem = values?.problem ?? 'none';
    if (noted.get(subject) === problem) return;
    noted.set(subject, problem);
    noting = noting
      .then(() => note(subject, values))
      .catch((error: unknown) => {
        noted.delete(subject);
        log.warn({ error }, 'model-key.not-noted');
      });
  };
  const valuesOf = (provider: string, problem: KeyProblem, label?: KeyLabel): KeyValues => {
    const variable = config.providers[provider]?.keysEnv;
    return {
      ...{ ...problem, provider },
      ...(problem.problem !== 'model' && variable && { variable }),
      ...(label && { key: String(label.key), keys: String(label.keys), tail: label.tail ?? '' }),
    };
  };
  return {
    noteKey: (provider, given) => {
      const subject = keySubject(provider, given);
      if (!given.isRefused) return see(subject);
      const problem = given.isCredit ? 'credit' : 'key';
      see(subject, valuesOf(provider, { problem, reason: given.detail }, given));
    },
    observer: {
      begin: ({ provider, model }) => ({
        end: (outcome) => {
          const ofModel = `${provider}/${model}`;
          if (outcome.kind === 'answered' && provider !== 'demo') {
            see(provider);
            see(ofModel);
          }
          if (outcome.kind !== 'failed') return;
          const { detail: reason, refusal, isAboutModel, isLongWait } = outcome.failure;
          if (isAboutModel || refusal === 'no-model')
            see(ofModel, valuesOf(provider, { problem: 'model', reason }));
          else if (refusal === 'address') see(provider, valuesOf(provider, { problem: 'address', reason }));
          else if (isLongWait) see(provider, valuesOf(provider, { problem: 'allowance', reason }));
        },
      }),
    },
  };
}

type KeyValues = Readonly<Record<string, string>> & KeyProblem;

/** Returns the subject of a key's alert: the provider, with what tells the key from its others. */
function keySubject(provider: string, { key, keys, tail }: KeyLabel): string {
  if (keys <= 1) return provider;
  return `${provider} ${tail === undefined ? `#${key}` : `…${tail}`}`;
}

/** Returns what tells the owner that a model's window is smaller than is known, and how to set it. */
export function createWindowAlerts({ store, log }: Pick<KeyAlertsDeps, 'store' | 'log'>) {
  return (subject: string, window: number): void => {
    log.warn({ model: subject, window }, 'model.window-learned');
    const alert = { kind: 'model-window', subject, values: { window: String(window) } } as const;
    store.write(raiseAlert, alert).catch((error: unknown) => {
      log.warn({ error }, 'model-window.not-noted');
    });
  };
}

/** Alerts the owner, once per process, that a model is asked without tools because it accepts none. */
export function createToolAlerts({
  store,
  log,
}: {
  readonly store: Pick<Store, 'write'>;
  readonly log: Log;
}): CallObserver {
  const told = new Set<string>();
  return {
    begin: ({ provider, model }) => ({
      end: (outcome) => {
        const subject = `${provider}/${model}`;
        if (outcome.kind !== 'answered' || !outcome.withoutTools || told.has(subject)) return;
        told.add(subject);
        log.warn({ provider, model }, 'model.tools-refused');
        store.write(raiseAlert, { kind: 'model-without-tools', subject }).catch((error: unknown) => {
          told.delete(subject);
          log.warn({ error }, 'model-tools.not-noted');
        });
      },
    }),
  };
}

/**
 * Logs each time that a conversation's prompt couldn't be read from the provider's cache. Alerts the owner, once a day
 * for each model, if the provider's reason is a change of a part that was sent unchanged.
 */
export function createCacheAlerts(deps: {
  readonly store: Pick<Store, 'write'>;
  readonly log: Log;
  readonly clock: Pick<Clock, 'now'>;
}): CallObserver {
  const { store, log, clock } = deps;
  const told = new Map<string, number>();
  return {
    begin: ({ provider, model, subject: run, request }) => ({
      end: (outcome) => {
        if (outcome.kind !== 'answered' || outcome.cacheMiss === undefined) return;
        const { cacheMiss: miss } = outcome;
        const { runId } = run ?? {};
        log.info({ runId, sessionId: request.conversation, provider, model, ...miss }, 'model.cache-missed');
        const subject = `${provider}/${model}`;
        const now = clock.now();
        if (!miss.isUnexplained || now - (told.get(subject) ?? Number.NEGATIVE_INFINITY) < dayMs) return;
        told.set(subject, now);
        const alert = { kind: 'model-cache', subject, values: { reason: miss.reason } } as const;
        store.write(raiseAlert, alert).catch((error: unknown) => {
          told.delete(subject);
          log.warn({ error }, 'model-cache.not-noted');
        });
      },
    }),
  };
}

const dayMs = 86_400_000;

type Settings = Pick<Config, 'providers' | 'models' | 'model' | 'agents' | 'channels'>;

/**
 * Returns a predicate that says whether an alert's subject is gone from the settings, in which case nothing else would
 * ever end the alert. A model chosen only by a session counts as gone; its next rejected call raises a new alert. These
 * settings are only read at the start.
 */
export function staleAlerts(
  config: Settings,
  channels: readonly ChannelEntry[],
): (alert: AlertName) => boolean {
  const accounts = configuredAccounts(channels, config);
  const lines = new Set(accounts.map(({ line }) => line));
  const networks = new Set(accounts.flatMap(({ entry, state }) => (state.kind === 'on' ? [entry.id] : [])));
  const models = namedModels(config);
  const providers = new Set(models.map(({ provider }) => provider));
  const keys = new Set([...providers].flatMap((provider) => keySubjects(provider, config)));
  const names = new Set(models.map(({ provider, id }) => `${provider}/${id}`));
  const offered = new Set(
    models.flatMap(({ provider, id, tools }) => (tools === false ? [] : [`${provider}/${id}`])),
  );
  return ({ kind, subject }) => {
    switch (kind) {
      case 'channel-down':
      case 'channel-unauthorised':
      case 'channel-challenge':
        return !lines.has(subject);
      case 'model-window':
      case 'model-cache':
        return !names.has(subject);
      case 'model-key':
        return !providers.has(subject) && !keys.has(subject) && !names.has(subject);
      case 'model-without-tools':
        return !offered.has(subject);
      case 'context-full':
        return config.agents.every(({ id }) => id !== subject);
      case 'delivery-waits':
        return !networks.has(routeOfKey(subject).channel);
      // These conditions persist or have already happened; the store ends the alerts that expire.
      case 'lane-stuck':
      case 'part-failing':
      case 'hook-suspended':
      case 'run-failed':
      case 'delivery-unknown':
      case 'delivery-expired':
      case 'events-missed':
      case 'conversation-moved':
      case 'conversation-unreachable':
      case 'budget-spent':
        return false;
      default:
        return kind satisfies never;
    }
  };
}

function keySubjects(provider: string, { providers }: Settings): readonly string[] {
  const keys = (providers[provider]?.apiKeys ?? []).map((key) => key.reveal());
  return keys.map((_, index) => keySubject(provider, labelKey(keys, index)));
}

/** Returns a function that tells the owner of a hook that is no longer called. */
export function suspensionAlerts(store: Pick<Store, 'writeAlong'>): NonNullable<HooksDeps['onSuspended']> {
  return ({ event, owner, problem }) =>
    store.writeAlong(raiseAlert, {
      kind: 'hook-suspended',
      subject: `${owner} ${event}`,
      values: { hook: owner, event, reason: problem },
    });
}

/** Opens the models of this process, with tracing and the payload log if the configuration turns them on. */
export async function openModel(
  options: GatewayOptions & Pick<StageDeps, 'store' | 'clock' | 'closers' | 'redact' | 'hooks'>,
  pluginProvider: FindPluginProvider,
): Promise<ConfiguredModel> {
  const { config, clock, log, closers } = options;
  if (options.model) return options.model;
  const { observers, tracer, close } = await openObservers(config, options);
  closers.add('model observers', close);
  const { observer, noteKey } = createKeyAlerts(options);
  const model = configuredModel(config, {
    ...{ clock, log, noteKey, pluginProvider },
    observers: [
      ...observers,
      observer,
      hookedCalls(options.hooks, clock),
      createToolAlerts(options),
      createCacheAlerts(options),
    ],
    noteWindow: createWindowAlerts(options),
  });
  return { ...model, ...(tracer && { tracer }) };
}

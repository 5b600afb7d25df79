import type { Log } from '#contracts/log.ts';
import type { Config } from '../config/config.ts';
import type { CallObserver } from '../models/observers/call-observer.ts';
import { isAlertOpen, raiseAlert, resolveAlert } from '../store/alerts/note-alert.ts';
import type { Store } from '../store/base/command.ts';

export type KeyAlertsDeps = {
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly log: Log;
  readonly config: Pick<Config, 'providers'>;
};

/**
 * Alerts the owner for as long as a provider refuses its keys, and for as long as it refuses them one of its models: that another
 * model answers, a fallback say, ends no such alert. Only a change is noted; what the store does not take is noted at
 * the next call.
 */
export function createKeyAlerts({ store, log, config }: KeyAlertsDeps): CallObserver {
  const noted = new Map<string, boolean>();
  /** One at a time: the end of an alert that overtook its beginning would end nothing. */
  let noting = Promise.resolve();

  const note = async (subject: string, refusal: string | undefined) => {
    const alert = { kind: 'model-key', subject } as const;
    if (refusal !== undefined) {
      const variable = config.providers[subject]?.keysEnv;
      await store.write(raiseAlert, { ...alert, values: { reason: refusal, ...(variable && { variable }) } });
      log.warn({ subject, reason: refusal }, 'model-key.refused');
    } else if (await store.read(isAlertOpen, alert)) await store.write(resolveAlert, alert);
  };
  const see = (subject: string, refusal?: string) => {
    const isRefused = refusal !== undefined;
    if (noted.get(subject) === isRefused) return;
    noted.set(subject, isRefused);
    noting = noting
      .then(() => note(subject, refusal))
      .catch((error: unknown) => {
        noted.delete(subject);
        log.warn({ error }, 'model-key.not-noted');
      });
  };
  return {
    begin: ({ provider, model }) => ({
      end: (outcome) => {
        const ofModel = `${provider}/${model}`;
        if (outcome.kind === 'answered' && provider !== 'demo') {
          see(provider);
          see(ofModel);
        }
        if (outcome.kind !== 'failed' || outcome.failure.kind !== 'unauthorised') return;
        const { detail, isAboutModel = false } = outcome.failure;
        see(isAboutModel ? ofModel : provider, detail);
      },
    }),
  };
}

/** Alerts the owner, once in this process, that a model is asked without tools because it takes none. */
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

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
 * Alerts the owner while a provider rejects its keys, and while it denies them one of its models. An answer from
 * another model, such as a fallback, doesn't end that alert. Only changes are stored; if the store fails, the next call
 * tries again.
 */
export function createKeyAlerts({ store, log, config }: KeyAlertsDeps): CallObserver {
  const noted = new Map<string, boolean>();
  /** One write at a time: if an alert's end overtook its beginning, it would end nothing. */
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

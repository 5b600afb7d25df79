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
 * Alerts the owner for as long as a provider refuses its keys. Only a change is noted; what the store does not take
 * is noted at the next call.
 */
export function createKeyAlerts({ store, log, config }: KeyAlertsDeps): CallObserver {
  const noted = new Map<string, boolean>();
  /** One at a time: the end of an alert that overtook its beginning would end nothing. */
  let noting = Promise.resolve();

  const note = async (subject: string, refusal: string | undefined) => {
    const alert = { kind: 'model-key', subject } as const;
    if (refusal !== undefined) {
      const variable = config.providers[subject]?.keysEnv ?? 'its variable';
      await store.write(raiseAlert, { ...alert, values: { reason: refusal, variable } });
      log.warn({ provider: subject, reason: refusal }, 'model-key.refused');
    } else if (await store.read(isAlertOpen, alert)) await store.write(resolveAlert, alert);
  };
  const see = (provider: string, refusal: string | undefined) => {
    const isRefused = refusal !== undefined;
    if (noted.get(provider) === isRefused) return;
    noted.set(provider, isRefused);
    noting = noting
      .then(() => note(provider, refusal))
      .catch((error: unknown) => {
        noted.delete(provider);
        log.warn({ error }, 'model-key.not-noted');
      });
  };
  return {
    begin: ({ provider }) => ({
      end: (outcome) => {
        if (outcome.kind === 'answered' && provider !== 'demo') see(provider, undefined);
        if (outcome.kind === 'failed' && outcome.failure.kind === 'unauthorised')
          see(provider, outcome.failure.detail);
      },
    }),
  };
}

import type { ChannelEntry } from '#contracts/channel.ts';
import { configuredAccounts } from '../channel-host/configured-accounts.ts';
import type { Config } from '../config/config.ts';
import { namedModels } from '../config/model-settings.ts';
import { labelKey } from '../models/provider-options.ts';
import type { AlertName } from '../store/alerts/alert-name.ts';
import { routeOfKey } from '../store/base/conversation-key.ts';
import { keySubject } from './model-alerts.ts';

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
      case 'run-failed':
      case 'delivery-unknown':
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

import { isContainer, parleyCommand } from '#channel-kit/own-commands.ts';
import type { Config, ProviderSettings } from '../../config/config.ts';
import { isLoopback } from '../../config/credentials.ts';
import { findModel } from '../../config/model-settings.ts';
import { checkKeys, type KeyAnswer } from '../../models/key-check.ts';
import { type DoctorCheck, failed, ok, warning } from './check.ts';

const timeoutMs = 10_000;

/** Names the model that answers, and sends one free request to each provider that has a key or is in use. */
export async function checkModels(config: Config): Promise<readonly DoctorCheck[]> {
  const used = usedProviders(config);
  const asked = Object.entries(config.providers).filter(
    ([name, { kind, apiKeys }]) => kind !== 'demo' && (apiKeys.length > 0 || used.has(name)),
  );
  const keys = await Promise.all(asked.map(([name, provider]) => checkProvider(name, provider)));
  return [checkDefaultModel(config), ...keys];
}

/** Checks the default model. A placeholder key is rejected with the configuration; having no key is a valid choice. */
function checkDefaultModel(config: Config): DoctorCheck {
  const name = 'model';
  const model = findModel(config.model, config);
  const provider = model && config.providers[model.provider];
  if (model === undefined || provider === undefined || provider.kind === 'demo' || provider.kind === 'plugin')
    return warning(
      name,
      'the demo model: a script that needs no key',
      `set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real model, or run: ${parleyCommand} onboard`,
    );
  const others = model.fallbacks.length === 0 ? '' : `, then ${model.fallbacks.join(', ')}`;
  const at = provider.baseUrl === undefined ? '' : ` at ${new URL(provider.baseUrl).host}`;
  return ok(name, `${config.model}${at}${others}`);
}

/** Says what to do about a server that can't be reached. `baseUrl`: absent for a vendor's own. */
export function reachAdvice(baseUrl: string | undefined, isInContainer = isContainer()): string {
  if (baseUrl === undefined) return "check this machine's network";
  const { host, hostname } = new URL(baseUrl);
  if (!isLoopback(hostname) && hostname !== '0.0.0.0') return `check the address ${host} and the way there`;
  const other = isInContainer
    ? ` (if it runs outside this container, its address is host.docker.internal, not ${hostname})`
    : '';
  return `start the server at ${host}, or correct its address${other}`;
}

function usedProviders(config: Config): ReadonlySet<string> {
  const ofAgents = config.agents.flatMap((agent) => agent.model ?? []);
  const named = [config.model, ...ofAgents].flatMap((name) => findModel(name, config) ?? []);
  const withFallbacks = named.flatMap(({ provider, fallbacks }) => [
    provider,
    ...fallbacks.flatMap((name) => findModel(name, config)?.provider ?? []),
  ]);
  return new Set(withFallbacks);
}

async function checkProvider(name: string, provider: ProviderSettings): Promise<DoctorCheck> {
  return judgeKeys(name, provider, await checkKeys(provider, AbortSignal.timeout(timeoutMs)));
}

/** Returns one check for all keys of a provider, based on the worst answer. */
export function judgeKeys(
  provider: string,
  { keysEnv, apiKeys, baseUrl }: Pick<ProviderSettings, 'keysEnv' | 'apiKeys' | 'baseUrl'>,
  answers: readonly KeyAnswer[],
): DoctorCheck {
  const name = `${provider} key`;
  const count = apiKeys.length;
  const rejected = answers.flatMap((answer, index) =>
    answer.kind === 'rejected' ? [{ answer, index }] : [],
  );
  const worst = rejected[0]?.answer ?? answers.find(({ kind }) => kind !== 'accepted');
  if (worst === undefined || worst.kind === 'accepted')
    return ok(name, count === 0 ? 'none needed' : `accepted (${count} ${count === 1 ? 'key' : 'keys'})`);
  if (worst.kind === 'elsewhere')
    return failed(
      name,
      `no model's server answers at the address of ${provider}: ${worst.reason}`,
      `set baseUrl of ${provider} to ${worst.right ?? "the address that its server's documents give, which usually ends in /v1"}`,
    );
  if (worst.kind === 'unclear') return ok(name, `can't be tested here: the server says ${worst.reason}`);
  if (worst.kind === 'unreachable')
    return failed(
      name,
      `${provider} isn't reachable: ${worst.reason}`,
      `${reachAdvice(baseUrl)}; until then ${provider} can't answer`,
    );
  const whichOf = (index: number) =>
    count > 1 ? `key ${index + 1} of ${count} in ${keysEnv}` : `the key in ${keysEnv}`;
  const details = rejected.map(({ answer, index }) =>
    answer.isCredit
      ? `${provider} reports a problem with the account of ${whichOf(index)}: ${answer.reason}`
      : `${provider} rejects ${whichOf(index)}: ${answer.reason}`,
  );
  const isCreditAlone = rejected.every(({ answer }) => answer.isCredit);
  const isUsable = answers.some(({ kind }) => kind === 'accepted');
  return (isUsable ? warning : failed)(
    name,
    details.join('\n'),
    isCreditAlone
      ? `check credit and limits of the account at ${provider}`
      : `set ${keysEnv} to a valid key and restart Parley, or run: ${parleyCommand} onboard`,
  );
}

import type { Config, ProviderSettings } from '../../config/config.ts';
import { findSecretProblem, Secret } from '../../config/secret.ts';
import { checkKeys, type KeyAnswer } from '../../models/key-check.ts';
import type { Answers } from './answers.ts';
import type { Option, Prompter } from './prompter.ts';

const timeoutMs = 15_000;
/** So many models of a server are offered to choose from. */
const mostModels = 15;
const vendors = {
  anthropic: { name: 'Anthropic', where: 'https://console.anthropic.com → API keys' },
  openai: { name: 'OpenAI', where: 'https://platform.openai.com → API keys' },
} as const;
type Vendor = keyof typeof vendors;

/** Asks for the model and tries its key. */
export async function askModel(ask: Prompter, config: Config): Promise<Answers> {
  const kept: readonly Option<'keep'>[] =
    config.model === 'demo' ? [] : [{ value: 'keep', label: `Keep ${config.model}` }];
  const choice = await ask.choose<Vendor | 'server' | 'demo' | 'keep'>('Which model answers?', [
    ...kept,
    { value: 'anthropic', label: 'Claude', hint: 'with an API key of Anthropic' },
    { value: 'openai', label: 'GPT', hint: 'with an API key of OpenAI' },
    { value: 'server', label: 'A server of your own', hint: 'Ollama, llama.cpp, vLLM, OpenRouter' },
    { value: 'demo', label: 'The demo model for now', hint: 'a script; needs no key' },
  ]);
  if (choice === 'server') return askServer(ask);
  if (choice === 'demo' || choice === 'keep') return { variables: {}, settings: {} };
  return askKey(ask, choice, config.providers[choice]);
}

async function askKey(
  ask: Prompter,
  vendor: Vendor,
  provider: ProviderSettings | undefined,
): Promise<Answers> {
  const { name, where } = vendors[vendor];
  const address = provider?.baseUrl === undefined ? {} : { baseUrl: provider.baseUrl };
  const variable = provider?.keysEnv ?? `${vendor.toUpperCase()}_API_KEY`;
  ask.say(`You find your key at ${where}.`);
  for (;;) {
    const key = await ask.secret(`API key of ${name}`, (value) => keyProblem(value));
    const tried = await ask.attempt(`Asking ${name} for its models, which is free`, async () => {
      const [answer] = await checkKeys(
        { kind: vendor, apiKeys: [new Secret(key)], ...address },
        AbortSignal.timeout(timeoutMs),
      );
      return wordsFor(name, answer);
    });
    if (tried.isWell || (await keepAnyway(ask, 'The key')))
      return { variables: { [variable]: key }, settings: {} };
  }
}

function keyProblem(value: string): string | undefined {
  const problem = findSecretProblem(value, 'api-key');
  return problem === undefined ? undefined : `This ${problem}.`;
}

function wordsFor(name: string, answer: KeyAnswer | undefined) {
  const models = answer?.kind === 'accepted' ? answer.models : [];
  switch (answer?.kind) {
    case 'accepted':
      return { isWell: true, text: `${name} accepts it.`, models };
    case 'rejected':
      return { isWell: false, text: `${name} rejects it: ${answer.reason}`, models };
    case 'unreachable':
      return { isWell: false, text: `${name} isn't reachable: ${answer.reason}`, models };
    case 'unclear':
    case undefined:
      return { isWell: false, text: `${name} can't tell: ${answer?.reason ?? 'no answer'}`, models };
    default:
      return answer satisfies never;
  }
}

/** After a failed attempt: false asks again. */
export async function keepAnyway(ask: Prompter, what: string): Promise<boolean> {
  const choice = await ask.choose(`${what} doesn't work yet.`, [
    { value: 'again', label: 'Type it again' },
    { value: 'keep', label: 'Keep it all the same' },
  ]);
  return choice === 'keep';
}

async function askServer(ask: Prompter): Promise<Answers> {
  for (;;) {
    const baseUrl =
      (await ask.text('Its address, up to /v1 (empty: Ollama on this machine)', {
        example: 'http://127.0.0.1:11434/v1',
        problemOf: (value) => (value === '' || isHttp(value) ? undefined : 'Write http://… or https://…'),
      })) || 'http://127.0.0.1:11434/v1';
    const key = await ask.secret('Its API key (empty: none)', (value) =>
      value === '' ? undefined : keyProblem(value),
    );
    const tried = await ask.attempt(`Asking ${new URL(baseUrl).host} for its models`, async () => {
      const apiKeys = key === '' ? [] : [new Secret(key)];
      const signal = AbortSignal.timeout(timeoutMs);
      const [answer] = await checkKeys({ kind: 'openai', apiKeys, baseUrl }, signal);
      return wordsFor(new URL(baseUrl).host, answer);
    });
    if (!tried.isWell && !(await keepAnyway(ask, 'The server'))) continue;
    const id = await askModelId(ask, tried.models);
    return {
      variables: key === '' ? {} : { OPENAI_API_KEY: key },
      settings: { model: `openai/${id}`, providers: { openai: { baseUrl } } },
    };
  }
}

async function askModelId(ask: Prompter, models: readonly string[]): Promise<string> {
  const other = ' other';
  if (models.length > 0 && models.length <= mostModels) {
    const options = [
      ...models.map((id) => ({ value: id, label: id })),
      { value: other, label: 'Another one' },
    ];
    const chosen = await ask.choose('Which of its models?', options);
    if (chosen !== other) return chosen;
  }
  return ask.text('The id of the model', {
    ...(models[0] !== undefined && { example: models[0] }),
    problemOf: (value) => (/^\S+$/.test(value) ? undefined : 'Write its id without spaces.'),
  });
}

function isHttp(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

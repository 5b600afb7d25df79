import type { Config } from '../../config/config.ts';
import { readConfigFile } from '../../config/config-file.ts';
import { type Environment, variableNamed } from '../../config/environment.ts';
import { findModel, vendorModels } from '../../config/model-settings.ts';
import { valueAt } from '../../config/problem.ts';
import { findSecretProblem, Secret } from '../../config/secret.ts';
import type { checkKeys, KeyAnswer } from '../../models/key-check.ts';
import { reachAdvice } from '../doctor/model-checks.ts';
import type { Answers } from './answers.ts';
import type { Option, Prompter } from './prompter.ts';
import { placeOf } from './report-settings.ts';

const timeoutMs = 15_000;
/** How many of a server's models are offered to choose from. */
const maxModels = 15;
const vendors = {
  anthropic: {
    name: 'Anthropic',
    where: 'https://console.anthropic.com → API keys',
    addressVariable: 'ANTHROPIC_BASE_URL',
  },
  openai: {
    name: 'OpenAI',
    where: 'https://platform.openai.com → API keys',
    addressVariable: 'OPENAI_BASE_URL',
  },
} as const;
type Vendor = keyof typeof vendors;

/** Name in `providers` of the operator's own server; its key is never sent to a vendor, nor a vendor's key to it. */
const ownServer = 'server';
/** Where Ollama listens unless told otherwise. */
const ollama = 'http://127.0.0.1:11434/v1';

/** The settings before the questions, and how to try a key. */
export type ModelDeps = {
  readonly config: Config;
  readonly environment: Environment;
  readonly home: string;
  /** Tries the keys of a provider. */
  readonly check: typeof checkKeys;
};

/** Asks for the model and tries its key. */
export async function askModel(ask: Prompter, deps: ModelDeps): Promise<Answers> {
  const { config } = deps;
  const kept: readonly Option<'keep'>[] =
    config.model === 'demo'
      ? []
      : [{ value: 'keep', label: `Keep ${config.model}`, hint: placeOfModel(deps) }];
  const choice = await ask.choose<Vendor | 'server' | 'demo' | 'keep'>('Which model answers?', [
    ...kept,
    { value: 'anthropic', label: 'Claude', hint: 'with an Anthropic API key' },
    { value: 'openai', label: 'GPT', hint: 'with an OpenAI API key' },
    { value: 'server', label: 'Your own server', hint: 'Ollama, llama.cpp, vLLM, OpenRouter' },
    { value: 'demo', label: 'The demo model for now', hint: 'a script; needs no key' },
  ]);
  switch (choice) {
    case 'keep':
      return { variables: {}, settings: {} };
    case 'demo':
      return { variables: {}, settings: { model: 'demo' } };
    case 'server':
      return askServer(ask, deps);
    default:
      return askKey(ask, choice, deps);
  }
}

/** Says what chose the model: a variable, the configuration file, or else the key of its vendor. */
function placeOfModel({ config, environment, home }: ModelDeps): string {
  if (environment.values.PARLEY_MODEL !== undefined) return `PARLEY_MODEL ${placeOf('PARLEY_MODEL', config)}`;
  const { configPath } = config;
  const isInFile = configPath && valueAt(readConfigFile(configPath, home).content, ['model']) !== undefined;
  if (isInFile) return `model in ${configPath}`;
  const variable = config.providers[findModel(config.model, config)?.provider ?? '']?.keysEnv;
  return variable === undefined ? 'the default' : `the default with ${variable} ${placeOf(variable, config)}`;
}

async function askKey(ask: Prompter, vendor: Vendor, deps: ModelDeps): Promise<Answers> {
  const { config, environment, check } = deps;
  const { name, where, addressVariable } = vendors[vendor];
  const variable = config.providers[vendor]?.keysEnv ?? `${vendor.toUpperCase()}_API_KEY`;
  // An address in the settings file is replaced below, because the person chose the vendor.
  const baseUrl = environment.values[addressVariable];
  const asked = baseUrl === undefined ? name : new URL(baseUrl).host;
  ask.say(`You’ll find your key at ${where}.`);
  if (baseUrl !== undefined)
    ask.say(
      `${addressVariable} ${placeOf(addressVariable, config)} is set, so ${asked} gets the key and the messages, not ${name}.`,
    );
  const known = config.providers[vendor];
  // A key for another server isn't offered to the vendor.
  const kept = known?.baseUrl === baseUrl ? (known?.apiKeys ?? []) : [];
  const question = `${name} API key`;
  const offer =
    kept.length === 0 ? question : `${question} (empty: keep ${variable} ${placeOf(variable, config)})`;
  for (;;) {
    const typed = await ask.secret(offer, (value) =>
      value === '' && kept.length > 0 ? undefined : keyProblem(value),
    );
    const key = typed || variableNamed(variable, environment) || '';
    const apiKeys = typed === '' ? kept : [new Secret(typed)];
    const tried = await ask.attempt(`Asking ${asked} for its models (free of charge)`, async () => {
      const [answer] = await check(
        { kind: vendor, apiKeys, ...(baseUrl !== undefined && { baseUrl }) },
        AbortSignal.timeout(timeoutMs),
      );
      return wordsFor(asked, answer, baseUrl);
    });
    if (!tried.isWell && !(await keepAnyway(ask, 'The key'))) continue;
    return {
      variables: { [variable]: key },
      settings: {
        model: modelAt(vendor, baseUrl, config),
        // The tested address: the gateway may start without this shell's variables.
        providers: { [vendor]: { baseUrl } },
      },
    };
  }
}

/** Returns the vendor's model already in use, or its default: another server's id may mean nothing to the vendor. */
function modelAt(vendor: Vendor, baseUrl: string | undefined, config: Config): string {
  const isOfVendor = findModel(config.model, config)?.provider === vendor;
  return isOfVendor && config.providers[vendor]?.baseUrl === baseUrl ? config.model : vendorModels[vendor];
}

function keyProblem(value: string, kind: 'api-key' | 'server-key' = 'api-key'): string | undefined {
  const problem = findSecretProblem(value, kind);
  return problem === undefined ? undefined : `This ${problem}.`;
}

function wordsFor(name: string, answer: KeyAnswer | undefined, baseUrl?: string) {
  const models = answer?.kind === 'accepted' ? answer.models : [];
  switch (answer?.kind) {
    case 'accepted':
      return { isWell: true, text: `${name} accepts it.`, models };
    case 'rejected':
      return { isWell: false, text: `${name} rejects it: ${answer.reason}`, models };
    case 'unreachable':
      return {
        isWell: false,
        text: `${name} isn't reachable: ${answer.reason}\n→ ${reachAdvice(baseUrl)}`,
        models,
      };
    case 'elsewhere': {
      const hint = answer.right === undefined ? '' : ` Try ${answer.right}`;
      return { isWell: false, text: `No model's server answers there: ${answer.reason}.${hint}`, models };
    }
    case 'unclear':
    case undefined:
      return { isWell: false, text: `${name} can't say: ${answer?.reason ?? 'no answer'}`, models };
    default:
      return answer satisfies never;
  }
}

/** Asks what to do after a failed attempt; false means to ask for it again. */
export async function keepAnyway(ask: Prompter, what: string): Promise<boolean> {
  const choice = await ask.choose(`${what} doesn't work yet.`, [
    { value: 'again', label: 'Type it again' },
    { value: 'keep', label: 'Keep it anyway' },
  ]);
  return choice === 'keep';
}

async function askServer(ask: Prompter, { config, check }: ModelDeps): Promise<Answers> {
  const known = config.providers[ownServer];
  const variable = known?.keysEnv ?? 'SERVER_API_KEY';
  const byDefault = known?.baseUrl ?? ollama;
  const meant = known?.baseUrl === undefined ? 'Ollama on this machine' : `keep ${byDefault}`;
  for (;;) {
    const baseUrl =
      (await ask.text(`Its address, up to /v1 (empty: ${meant})`, {
        example: ollama,
        problemOf: (value) => (value === '' || isHttp(value) ? undefined : 'Write http://… or https://…'),
      })) || byDefault;
    const key = await ask.secret('Its API key (empty: none)', (value) =>
      value === '' ? undefined : keyProblem(value, 'server-key'),
    );
    const tried = await ask.attempt(`Asking ${new URL(baseUrl).host} for its models`, async () => {
      const apiKeys = key === '' ? [] : [new Secret(key)];
      const signal = AbortSignal.timeout(timeoutMs);
      const [answer] = await check({ kind: 'openai', apiKeys, baseUrl }, signal);
      return wordsFor(new URL(baseUrl).host, answer, baseUrl);
    });
    if (!tried.isWell && !(await keepAnyway(ask, 'The server'))) continue;
    const id = await askModelId(ask, tried.models);
    // An earlier server's key must not go to this one.
    const isKeySet = key !== '' || (known?.apiKeys.length ?? 0) > 0;
    return {
      variables: isKeySet ? { [variable]: key } : {},
      settings: { model: `${ownServer}/${id}`, providers: { [ownServer]: { baseUrl } } },
    };
  }
}

async function askModelId(ask: Prompter, models: readonly string[]): Promise<string> {
  const other = ' other';
  if (models.length > 0 && models.length <= maxModels) {
    const options = [
      ...models.map((id) => ({ value: id, label: id })),
      { value: other, label: 'Another one' },
    ];
    const chosen = await ask.choose('Which of its models?', options);
    if (chosen !== other) return chosen;
  }
  return ask.text('The model’s id', {
    ...(models[0] !== undefined && { example: models[0] }),
    problemOf: (value) => (/^\S+$/.test(value) ? undefined : 'Write its id without spaces.'),
  });
}

function isHttp(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

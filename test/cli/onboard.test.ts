import { spawnSync } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type OnboardDeps, onboard } from '../../src/cli/onboard.ts';
import { readSurroundings } from '../../src/config/environment.ts';
import { Secret } from '../../src/config/secret.ts';
import { channelId } from '../../src/contracts/ids.ts';
import { aFolder } from '../support/own-folder.ts';

let home: string;
beforeEach(async () => {
  home = aFolder();
});

const gptKey = 'sk-proj-0000000001';
const claudeKey = 'sk-ant-api03-0000000001';
const keyOf = (vendor: string) => `${vendor} API key`;
const gpt = { 'Which model answers?': 'openai', [keyOf('OpenAI')]: gptKey };
const claude = { 'Which model answers?': 'anthropic', [keyOf('Anthropic')]: claudeKey };
const house = 'http://127.0.0.1:9/v1';
const ownServer = {
  'Which model answers?': 'server',
  'Its address, up to /v1 (empty: Ollama on this machine)': house,
  'Its API key (empty: none)': '',
  'Which of its models?': 'qwen3',
};
const demo = { 'Which model answers?': 'demo' };

type Shell = Readonly<Record<string, string>>;

/** Runs onboarding with these answers, without a network. */
async function choose(answers: Shell, shell: Shell = {}, channels: OnboardDeps['channels'] = []) {
  const said: string[] = [];
  const asked: Parameters<OnboardDeps['check']>[0][] = [];
  const all: Shell = { 'Which network will you use to write to it?': '', ...answers };
  const offered: string[] = [];
  const questions: string[] = [];
  const answerTo = (question: string): string => {
    questions.push(question);
    // A question that offers to keep a value is answered as the same one without.
    const answer = all[question] ?? all[question.replace(/ \(empty: keep .*\)$/, '')];
    if (answer === undefined) throw new Error(`“${question}” has no answer here`);
    return answer;
  };
  const code = await onboard({
    channels,
    home,
    // Port 0: no running gateway is looked for.
    read: () => readSurroundings(home, { PARLEY_PORT: '0', ...shell }),
    check: async (provider) => {
      asked.push(provider);
      return [{ kind: 'accepted', models: ['qwen3'] }];
    },
    open: async () => ({
      choose: async (question, options) => {
        offered.push(...options.map(({ label, hint = '' }) => `${label}: ${hint}`));
        const option = options.find(({ value }) => value === answerTo(question));
        if (option === undefined) throw new Error(`${answerTo(question)} isn't offered`);
        return option.value;
      },
      text: async (question) => answerTo(question),
      secret: async (question) => answerTo(question),
      attempt: async (_what, work) => {
        const tried = await work();
        said.push(tried.text);
        return tried;
      },
      say: (text) => said.push(text),
      end: (text) => said.push(text),
    }),
  });
  return { code, said: said.join('\n'), asked, offered, questions };
}

const settings = async () => JSON.parse(await readFile(join(home, 'parley.config.json'), 'utf8'));

describe('the model chosen in onboarding', () => {
  it("switches from a server of one's own to Claude", async () => {
    await choose(ownServer);
    expect(await settings()).toEqual({ model: 'server/qwen3', providers: { server: { baseUrl: house } } });
    const { said } = await choose(claude);
    expect(said).toContain('Model: anthropic/claude-sonnet-5-5\n');
    expect(await settings()).toMatchObject({ model: 'anthropic/claude-sonnet-5-5' });
  });

  it('switches to GPT although there is an Anthropic key', async () => {
    await choose(claude);
    const { said } = await choose(gpt);
    expect(said).toContain('Model: openai/gpt-6-luna\n');
  });

  it('switches to the demo although there is a key', async () => {
    await choose(gpt);
    expect((await choose(demo)).said).toContain('Model: demo\n');
  });

  it('asks for a model even if the configured one lacks its key', async () => {
    await choose(claude);
    await rm(join(home, '.env'));
    expect((await choose(gpt)).said).toContain('Model: openai/gpt-6-luna\n');
    await rm(join(home, '.env'));
    expect((await choose(demo)).said).toContain('Model: demo\n');
    await writeFile(join(home, 'parley.config.json'), '{"model":"openai/x","logLevel":"loud"}');
    await expect(choose(demo)).rejects.toThrow('logLevel in ');
  });

  it('keeps the configured model of a vendor if only its key is replaced', async () => {
    await writeFile(join(home, 'parley.config.json'), '{"model":"openai/gpt-5-mini"}');
    await writeFile(join(home, '.env'), 'OPENAI_API_KEY=sk-old-00000001\n');
    await choose(gpt);
    expect(await settings()).toEqual({ model: 'openai/gpt-5-mini' });
  });

  it('asks the vendor itself, whatever address the file has', async () => {
    const before = { port: 7500, model: 'openai/qwen3', providers: { openai: { baseUrl: house } } };
    await writeFile(join(home, 'parley.config.json'), JSON.stringify(before));
    const { asked, said } = await choose(gpt);
    expect(asked).toEqual([{ kind: 'openai', apiKeys: [expect.anything()] }]);
    expect(said).toContain('(removed: providers.openai.baseUrl)');
    expect(said).toContain('Model: openai/gpt-6-luna\n');
    expect(await settings()).toEqual({ port: 7500, model: 'openai/gpt-6-luna' });
  });

  it('prints additions and removals for a file with comments instead of rewriting it', async () => {
    const before = `{ "model": "openai/qwen3", "providers": { "openai": { "baseUrl": "${house}" } } } // mine`;
    await writeFile(join(home, 'parley.config.json'), before);
    const { said } = await choose(gpt);
    expect(said).toContain('"model": "openai/gpt-6-luna"\n}\nAnd remove from it: providers.openai.baseUrl');
    expect(said).toContain('Model: openai/qwen3 at 127.0.0.1:9\n');
  });

  it('names what overrides the chosen model', async () => {
    await writeFile(join(home, '.env'), 'PARLEY_MODEL=demo\n');
    const first = await choose(gpt);
    expect(first.said).toContain(
      `PARLEY_MODEL in ${join(home, '.env')} takes precedence over model: unset it there.`,
    );
    expect(first.said).toContain('Model: demo\n');
    const second = await choose(gpt, { PARLEY_MODEL: '', OPENAI_BASE_URL: house });
    expect(second.asked).toMatchObject([{ baseUrl: house }]);
    expect(second.said).toContain(
      "OPENAI_BASE_URL of this shell's environment is set, so 127.0.0.1:9 gets the key and the messages, not OpenAI.",
    );
    expect(second.said).toContain('127.0.0.1:9 accepts it.');
    // A gateway started without this shell's variables uses the address that was tested.
    expect(await settings()).toMatchObject({ providers: { openai: { baseUrl: house } } });
    expect(second.said).not.toContain("OPENAI_BASE_URL of this shell's environment takes precedence");
  });

  it("names an agent's own model, which overrides the chosen one", async () => {
    await writeFile(join(home, 'parley.config.json'), '{"agents":[{"id":"main","model":"demo"}]}');
    const { said } = await choose(gpt);
    expect(said).toContain('The agent main has its own model in ');
    expect(said).toContain('Model: demo\n');
  });
});

describe('existing values', () => {
  it('offers an existing value with its location, including what chose the model', async () => {
    await choose(gpt);
    const env = join(home, '.env');
    const keep = {
      [`${keyOf('OpenAI')} (empty: keep OPENAI_API_KEY in ${env})`]: '',
      'Which model answers?': 'openai',
    };
    const { asked, offered, said } = await choose(keep);
    expect(asked).toEqual([{ kind: 'openai', apiKeys: [new Secret(gptKey)] }]);
    expect(offered).toContain(`Keep openai/gpt-6-luna: model in ${join(home, 'parley.config.json')}`);
    expect(said).not.toContain('Secrets:');
    const byVariable = await choose(keep, { PARLEY_MODEL: 'openai/gpt-5-mini' });
    expect(byVariable.offered).toContain("Keep openai/gpt-5-mini: PARLEY_MODEL of this shell's environment");
    await rm(join(home, 'parley.config.json'));
    expect((await choose(demo)).offered).toContain(
      `Keep openai/gpt-6-luna: the default with OPENAI_API_KEY in ${env}`,
    );
  });

  it('keeps an existing key for starts from another shell and never offers it to another server', async () => {
    const shell = { OPENAI_API_KEY: gptKey };
    const keep = {
      [`${keyOf('OpenAI')} (empty: keep OPENAI_API_KEY of this shell's environment)`]: '',
      'Which model answers?': 'openai',
    };
    const { said } = await choose(keep, shell);
    expect(said).not.toContain('takes precedence');
    expect(await readFile(join(home, '.env'), 'utf8')).toBe(`OPENAI_API_KEY=${gptKey}\n`);
    await writeFile(
      join(home, 'parley.config.json'),
      JSON.stringify({ model: 'openai/x', providers: { openai: { baseUrl: house } } }),
    );
    const { questions, asked } = await choose(gpt);
    expect(questions).toContain(keyOf('OpenAI'));
    expect(asked).toEqual([{ kind: 'openai', apiKeys: [new Secret(gptKey)] }]);
  });

  it('offers an existing token for a network, too', async () => {
    const token = `123456:${'A'.repeat(35)}`;
    const network = {
      id: channelId('telegram'),
      load: async () => (await import('../../channels/telegram/index.ts')).channel,
      setUp: async () => (await import('../../channels/telegram/set-up.ts')).setUp,
    };
    const answers = {
      ...demo,
      'Which network will you use to write to it?': 'telegram',
      "Bot token (empty: keep TELEGRAM_BOT_TOKEN of this shell's environment)": '',
      "Signing in to Telegram doesn't work yet.": 'keep',
      'Who is the owner, with permission to do everything?': 'pair',
      'Which groups should it answer in when mentioned?': 'allowlist',
    };
    await choose(answers, { TELEGRAM_BOT_TOKEN: token, TELEGRAM_API_ROOT: 'http://127.0.0.1:9' }, [network]);
    expect(await readFile(join(home, '.env'), 'utf8')).toBe(`TELEGRAM_BOT_TOKEN=${token}\n`);
  });
});

it("gives no server another server's key", async () => {
  await choose(gpt);
  await choose({ ...ownServer, 'Its API key (empty: none)': 'house-key-0001' });
  const { asked } = await choose({ ...ownServer, [`Its address, up to /v1 (empty: keep ${house})`]: '' });
  expect(asked).toEqual([{ kind: 'openai', apiKeys: [], baseUrl: house }]);
  expect(await readFile(join(home, '.env'), 'utf8')).toBe(`OPENAI_API_KEY=${gptKey}\nSERVER_API_KEY=\n`);
});

it("accepts a short key for a server of one's own and starts with it", async () => {
  const { said } = await choose({ ...ownServer, 'Its API key (empty: none)': 'ollama' });
  expect(said).toContain('Model: server/qwen3 at');
  expect(await readFile(join(home, '.env'), 'utf8')).toBe('SERVER_API_KEY=ollama\n');
});

it.each(['pipe', 'ignore'] as const)('ends without a change when input of kind %s ends', (input) => {
  const program = join(import.meta.dirname, '../../bin/parley.mjs');
  const env = { PATH: process.env.PATH, HOME: home };
  const run = spawnSync(process.execPath, [program, 'onboard'], {
    cwd: home,
    env,
    // Ignored input is /dev/null, which is a file.
    stdio: [input, 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  expect(run.stdout).toContain('Nothing was changed.');
  expect(run).toMatchObject({ status: 1, stderr: '' });
});

it('asks nothing if it could not write the answers', async () => {
  await writeFile(join(home, 'a-file'), '');
  const shell = { PARLEY_DATA_DIR: join(home, 'a-file', 'data') };
  await expect(choose({}, shell)).rejects.toThrow(
    `${join(home, 'a-file')} isn't a folder, so Parley can't write ${join(home, 'a-file', 'data', '.env')}. `,
  );
});

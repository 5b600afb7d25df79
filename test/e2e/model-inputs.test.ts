/** Answers and refusals that were reported by others, from a model's server through a running gateway to the chat. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, describe, test } from 'vitest';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { sse } from '../inputs/models/read-with.ts';
import { shareGateway } from './shared-gateway.ts';

type Api = 'openai' | 'anthropic';
type Answer = { readonly status?: number; readonly body: unknown };
type Played = {
  readonly what: string;
  readonly api?: Api;
  readonly where?: 'group';
  /** A model of its own, for refusals that teach its limits. */
  readonly model?: 'second' | 'third';
  /** In turn, the last one again and again; then `Fine.`, unless the last one is to last. */
  readonly answers: readonly Answer[];
  readonly isLasting?: true;
  /** What the chat shows; absent: nothing. */
  readonly shows?: string | RegExp;
  /** What the last request contains. */
  readonly asks?: string | RegExp;
};

const reported = (name: string) =>
  readFileSync(new URL(`../inputs/models/reported/${name}`, import.meta.url), 'utf8');
const listed = (name: string) => JSON.parse(reported(name)) as (Answer & { readonly api?: Api })[];
const fine: Readonly<Record<Api, string>> = {
  openai: sse([{ choices: [{ index: 0, delta: { content: 'Fine.' }, finish_reason: 'stop' }] }]),
  anthropic: [
    {
      type: 'message_start',
      message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 9 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Fine.' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
};

/** Starts a server of both APIs that answers each conversation, which it knows by its mark, in its own way. */
async function startPlayer() {
  const scripts = new Map<string, { readonly played: Played; readonly requests: string[] }>();
  const server = createServer(async (request, response) => {
    const asked = await text(request);
    const [, mark = ''] = /(no\d+)\b/.exec(asked) ?? [];
    const api: Api = request.url?.includes('messages') ? 'anthropic' : 'openai';
    const script = scripts.get(`${api}/${mark}`);
    script?.requests.push(asked);
    const { answers = [], isLasting } = script?.played ?? {};
    const count = script?.requests.length ?? 0;
    const { status = 200, body } = answers[count - 1] ?? (isLasting && answers.at(-1)) ?? { body: fine[api] };
    const isText = typeof body === 'string';
    response.writeHead(status, { 'content-type': isText ? 'text/event-stream' : 'application/json' });
    response.end(isText ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    play: (api: Api, mark: string, played: Played) => {
      const requests: string[] = [];
      scripts.set(`${api}/${mark}`, { played, requests });
      return requests;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const { modelAccount, modelDeclined, modelFailed, modelUnauthorised } = textsFor('en');
const tooLong = /too long/;
const markdown = (name: string) => [
  { body: sse([{ choices: [{ index: 0, delta: { content: reported(name) }, finish_reason: 'stop' }] }]) },
];
const json = (name: string) => [{ body: JSON.parse(reported(name)) as unknown }];
const stream = (name: string) => [{ body: reported(name) }];
const [wrappedOverflow, wrappedKey, wrappedOther] = listed('30-openrouter-wrapped-errors.json');
const [noBalance, usageLimit, noQuota, tooQuick, overloaded] = listed('33-account-and-quota.json');
const only = (answer: Answer | undefined) => (answer ? [answer] : []);

const inputs: readonly Played[] = [
  { what: '12a', where: 'group', answers: stream('12a-closing-think-only.sse') },
  { what: '13', answers: stream('13-harmony.sse'), shows: 'four' },
  { what: '14a', answers: stream('14a-dsml.sse'), shows: /Fine\./, asks: '"role":"tool"' },
  { what: '15', answers: stream('15-no-finish-reason.sse'), shows: 'Complete answer without finish.' },
  { what: '16', answers: json('16-json-to-stream.json'), shows: 'Answer in one JSON body.' },
  ...listed('17-limit-400s.json').map((answer, index) => ({
    ...{
      what: `17, ${index + 1}`,
      answers: [answer],
      shows: 'Fine.',
      asks: /"max_(?:completion_)?tokens":2048/,
    },
    ...(index === 1 && { model: 'second' as const }),
  })),
  {
    ...{ what: '18', answers: only(JSON.parse(reported('18-openrouter-402.json'))) },
    ...{ shows: 'Fine.', asks: /"max_(?:completion_)?tokens":3\d\d\d\b/, model: 'third' as const },
  },
  {
    ...{ what: '19', api: 'anthropic', answers: stream('19-input-in-start-block.sse') },
    ...{ shows: 'Fine.', asks: 'notes/a.md' },
  },
  {
    ...{ what: '20', answers: markdown('20-table-with-links.md') },
    shows: /https:\/\/nodejs\.org\/en\/blog\/v24\?x=1/,
  },
  { what: '21', answers: markdown('21-cjk-bold.md'), shows: /^注意：请不要删除文件。“重要”的是备份。[^*]*$/ },
  { what: '30, overflow', answers: only(wrappedOverflow), isLasting: true, shows: tooLong },
  { what: '30, key', answers: only(wrappedKey), isLasting: true, shows: modelUnauthorised },
  { what: '30, other', answers: only(wrappedOther), isLasting: true, shows: modelFailed },
  ...listed('31-overflow-wordings.json').map((answer, index) => ({
    ...{ what: `31, ${index + 1}`, answers: [answer], isLasting: true as const, shows: tooLong },
    ...(answer.api && { api: answer.api }),
  })),
  ...listed('32-content-policy.json').map((answer, index) => ({
    ...{ what: `32, ${index + 1}`, answers: [answer], isLasting: true as const, shows: modelDeclined },
  })),
  { what: '33, balance', answers: only(noBalance), isLasting: true, shows: modelAccount },
  { what: '33, limit', api: 'anthropic', answers: only(usageLimit), isLasting: true, shows: modelAccount },
  { what: '33, quota', api: 'anthropic', answers: only(noQuota), isLasting: true, shows: modelAccount },
  { what: '33, rate', answers: only(tooQuick), shows: 'Fine.' },
  { what: '33, overload', answers: only(overloaded), shows: 'Fine.' },
  { what: '34', answers: json('34-cached-more-than-prompt.json'), shows: 'Rome' },
  { what: '35', answers: json('35-charge-beside-a-known-price.json'), shows: 'ok' },
  { what: '36', answers: stream('36-mistral-thinking-parts.sse'), shows: 'Four.' },
  { what: '37', answers: stream('37-tool-use-failed-in-stream.sse'), shows: 'Fine.' },
  {
    ...{ what: '39', answers: stream('39-citations.sse') },
    shows: /Rome is the capital\.[\s\S]*https:\/\/example\.org\/one/,
  },
  {
    ...{ what: '40', answers: [JSON.parse(reported('40-error-in-a-200-body.json')) as Answer] },
    shows: 'Fine.',
  },
];

const player = await startPlayer();
afterAll(player.close);

/** Neither reasoning nor protocol. */
const hidden = /Ann seems upset|User asks|I must call|2 and 2|DSML|<\||think>/;

describe.each(['openai', 'anthropic'] as const)('a server of the kind %s', (api) => {
  const house = { kind: api, baseUrl: api === 'openai' ? `${player.url}/v1` : player.url };
  const models = { second: { provider: 'house', id: 'second' }, third: { provider: 'house', id: 'third' } };
  const config = { providers: { house }, model: 'house/some-model', models };
  const aTalk = shareGateway({ config, env: { HOUSE_API_KEY: 'key-of-the-house-0001' } });

  test.concurrent.for(inputs.filter((each) => (each.api ?? 'openai') === api))(
    'sends the meaning of $what to the chat',
    async (played, { expect }) => {
      const talk = aTalk(played.where);
      const requests = player.play(api, talk.mark, played);
      if (played.model !== undefined) {
        talk.says(`/model ${played.model}`);
        await talk.untilSaid(/^From the next message on/);
      }
      talk.says(`${played.where === 'group' ? '@ParleyTestBot ' : ''}Hello? ${talk.mark}`);
      if (played.shows !== undefined) {
        const shown = () =>
          talk.telegram.messages(talk.chat).map((each) => `${each.text}\n${JSON.stringify(each)}`);
        const { shows } = played;
        await talk.telegram.waitFor(() =>
          shown().some((each) =>
            typeof shows === 'string' ? each.startsWith(`${shows}\n`) : shows.test(each),
          ),
        );
      }
      await talk.untilAtRest(1);
      const all = JSON.stringify(talk.said());
      expect(all).not.toMatch(hidden);
      if (played.shows === undefined) expect(talk.said()).toEqual([]);
      if (played.asks !== undefined) expect(requests.at(-1)).toMatch(played.asks);
    },
  );
});

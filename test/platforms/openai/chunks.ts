/** An answer as the chunks of its stream, in the form that each server sends. */
import type { Turn } from '../anthropic/turn.ts';

export type Flavour = 'openai' | 'ollama' | 'llamacpp' | 'openrouter' | 'gemini';

export type Counted = { readonly prompt: number; readonly completion: number; readonly cached: number };

export type AnswerFacts = {
  readonly model: string;
  readonly newId: () => string;
  readonly counted: Counted;
  /** Whether the request asked for usage in the stream. */
  readonly isUsageAsked: boolean;
};

/** `isChunk`: a piece of the answer itself; faults count these. */
export type Step = { readonly text: string; readonly isChunk: boolean };

export function stepsOf(turn: Turn, flavour: Flavour, facts: AnswerFacts): readonly Step[] {
  const head = { id: facts.newId(), object: 'chat.completion.chunk', created: 1, model: facts.model };
  const line = (choice: object | undefined, extra: object = {}) =>
    `data: ${JSON.stringify({ ...head, choices: choice ? [{ index: 0, finish_reason: null, ...choice }] : [], ...extra })}\n\n`;
  const piece = (delta: object): Step => ({ text: line({ delta }), isChunk: true });
  const texts = turn.chunks ?? (turn.text === undefined ? [] : [turn.text]);
  const finish = turn.stopReason ?? (turn.toolCalls ? 'tool_calls' : 'stop');
  const usage = usageOf(facts.counted, flavour);
  const inLast =
    flavour === 'openrouter' ? { usage } : flavour === 'llamacpp' ? timingsOf(facts.counted) : {};
  return [
    ...(flavour === 'openai'
      ? [{ text: line({ delta: { role: 'assistant', content: '' } }), isChunk: false }]
      : []),
    ...(flavour === 'openrouter' ? [{ text: ': OPENROUTER PROCESSING\n\n', isChunk: false }] : []),
    ...(turn.thinking === undefined ? [] : reasoningOf(turn.thinking, flavour).map(piece)),
    ...texts.map((content) => piece({ content })),
    ...(turn.toolCalls ?? []).flatMap((call, index) => {
      const json = call.inputJson ?? JSON.stringify(call.input ?? {});
      return callDeltas({ id: call.id ?? facts.newId(), name: call.name, json, index }, flavour).map(
        (delta) => piece({ tool_calls: [delta] }),
      );
    }),
    { text: line({ delta: {}, finish_reason: finish }, inLast), isChunk: false },
    ...((flavour === 'openai' || flavour === 'ollama' || flavour === 'gemini') && facts.isUsageAsked
      ? [{ text: line(undefined, { usage }), isChunk: false }]
      : []),
    { text: 'data: [DONE]\n\n', isChunk: false },
  ];
}

/** Returns the reasoning deltas. OpenAI and Gemini show no reasoning in Chat Completions. */
function reasoningOf(thinking: string, flavour: Flavour): readonly object[] {
  switch (flavour) {
    case 'openai':
    case 'gemini':
      return [];
    case 'ollama':
      return [{ role: 'assistant', content: '', reasoning: thinking }];
    case 'llamacpp':
      return [{ reasoning_content: thinking }];
    case 'openrouter': {
      const details = [{ type: 'reasoning.text', text: thinking, signature: `signed ${thinking}`, index: 0 }];
      return [{ content: '', reasoning: thinking, reasoning_details: details }];
    }
    default:
      return flavour satisfies never;
  }
}

type Called = { readonly id: string; readonly name: string; readonly json: string; readonly index: number };

function callDeltas({ id, name, json, index }: Called, flavour: Flavour): readonly object[] {
  const whole = { id, type: 'function', function: { name, arguments: json } };
  // Ollama numbers every call 0.
  if (flavour === 'ollama') return [{ ...whole, index: 0 }];
  // The first of parallel calls carries the signature for all of them.
  if (flavour === 'gemini')
    return [{ ...whole, index, ...(index === 0 && { extra_content: { google: signatureOf(id) } }) }];
  const middle = Math.ceil(json.length / 2);
  const rest = [json.slice(0, middle), json.slice(middle)].map((part) => ({
    index,
    // llama.cpp sends the id once; other servers may repeat it.
    ...(flavour === 'openrouter' && { id, type: 'function' }),
    function: { arguments: part },
  }));
  return [{ ...whole, index, function: { name, arguments: '' } }, ...rest];
}

/** Returns the signature of a call in the Gemini flavour. */
export function signatureOf(id: string): { readonly thought_signature: string } {
  return { thought_signature: `signed ${id}` };
}

function usageOf({ prompt, completion, cached }: Counted, flavour: Flavour): object {
  const counts = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  if (flavour === 'ollama') return counts;
  const details = { prompt_tokens_details: { cached_tokens: cached } };
  return { ...counts, ...details, ...(flavour === 'openrouter' && { cost: 0.25 }) };
}

function timingsOf({ prompt, completion, cached }: Counted): object {
  return { timings: { prompt_n: prompt - cached, cache_n: cached, predicted_n: completion } };
}

/** Returns the complete answer to a request that doesn't stream. */
export function wholeOf(turn: Turn, flavour: Flavour, facts: AnswerFacts): object {
  const content = turn.chunks?.join('') ?? turn.text ?? null;
  return {
    ...{ id: facts.newId(), object: 'chat.completion', created: 1, model: facts.model },
    choices: [
      { index: 0, finish_reason: turn.stopReason ?? 'stop', message: { role: 'assistant', content } },
    ],
    ...(flavour === 'llamacpp' ? timingsOf(facts.counted) : { usage: usageOf(facts.counted, flavour) }),
  };
}

import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { LlmProvider, ModelEvent, ModelInfo, ModelRequest } from '#contracts/model.ts';
import type { PluginProviderFactory } from '#contracts/plugin-parts.ts';
import { noPrices } from './prices.ts';
import { hasDocuments, withoutDocuments } from './unsupported.ts';

/** Returns what a plugin has registered under a provider's name; undefined while it isn't loaded. */
export type FindPluginProvider = (name: string) => PluginProviderFactory | undefined;

/** A model whose plugin isn't there: it is small, so that nothing is asked of it that it couldn't take. */
const unknownModel = { contextWindow: 8_000, maxOutputTokens: 1_000, answerTokens: 1_000, canThink: false };

/**
 * Creates a model that a plugin provides. The plugin is found at each call: models come before plugins, and a reload may
 * replace it.
 */
export function createPluginProvider(
  name: string,
  model: string,
  find: FindPluginProvider = () => undefined,
): LlmProvider {
  let made: { readonly create: PluginProviderFactory; readonly provider: LlmProvider } | undefined;
  const provider = (): LlmProvider => {
    const create = find(name);
    if (create !== undefined && create !== made?.create) made = { create, provider: create(model) };
    if (create !== undefined && made !== undefined) return made.provider;
    throw new ParleyError(
      'model_failed',
      `No plugin provides the models of ${name}. See: ${parleyCommand} plugins list`,
    );
  };
  const readable = (request: ModelRequest) =>
    hasDocuments(request) && !provider().model().takesDocuments ? withoutDocuments(request) : request;
  return {
    id: name,
    stream: async function* (request, signal): AsyncGenerator<ModelEvent> {
      let hasEnded = false;
      try {
        for await (const event of provider().stream(readable(request), signal)) {
          hasEnded ||= event.type === 'complete' || event.type === 'error';
          yield event;
        }
        if (!hasEnded) yield failureOf(new Error('its stream ended early'));
      } catch (error) {
        if (!hasEnded) yield failureOf(error);
      }
    },
    send: async (request, signal, onWait) => {
      try {
        return await provider().send(readable(request), signal, onWait);
      } catch (cause) {
        if (cause instanceof ParleyError) throw cause;
        throw new ParleyError('model_failed', messageOf(cause), { cause });
      }
    },
    model: (): ModelInfo => {
      try {
        return provider().model();
      } catch {
        return { id: `${name}/${model}`, ...unknownModel, prices: noPrices };
      }
    },
  };
}

function failureOf(error: unknown): ModelEvent {
  return { type: 'error', failure: { kind: 'failed', detail: messageOf(error) } };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

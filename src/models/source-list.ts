/**
 * The sources that a search model names beside its answer: Perplexity, xAI, OpenRouter and OpenAI's search models,
 * Z.ai, DashScope, Claude.
 */
import type { Source } from '#contracts/message.ts';

const maxSources = 20;
const maxUrlLength = 2_000;
const maxTitleLength = 200;

/** Fields of a chunk that list sources. */
type SourceFields = {
  readonly citations?: unknown;
  readonly search_results?: unknown;
  readonly web_search?: unknown;
  readonly search_info?: unknown;
};

/** Collects the sources of one answer, each once, in the order in which they are numbered. */
export class SourceList {
  readonly #sources = new Map<string, string | undefined>();

  read({ citations, search_results: results, web_search: found, search_info: info }: SourceFields): void {
    const named = (info as { readonly search_results?: unknown } | null | undefined)?.search_results;
    for (const list of [citations, results, found, named]) for (const each of listIn(list)) this.add(each);
  }

  readAnnotations(annotations: unknown): void {
    for (const each of listIn(annotations)) {
      const { url_citation: nested } = each as { readonly url_citation?: unknown };
      this.add(nested ?? each);
    }
  }

  /** Adds an address, or an object with one. */
  add(given: unknown): void {
    const fields = (typeof given === 'string' ? { url: given } : given) as Record<string, unknown> | null;
    const url = webAddress(fields?.url ?? fields?.link ?? fields?.uri);
    if (url === undefined || (this.#sources.size >= maxSources && !this.#sources.has(url))) return;
    const title = typeof fields?.title === 'string' ? fields.title.trim().slice(0, maxTitleLength) : '';
    this.#sources.set(url, this.#sources.get(url) ?? (title === '' ? undefined : title));
  }

  list(): readonly Source[] {
    return [...this.#sources].map(([url, title]) => (title === undefined ? { url } : { url, title }));
  }
}

function listIn(value: unknown): readonly object[] | readonly string[] {
  if (!Array.isArray(value)) return [];
  return value
    .slice(0, 2 * maxSources)
    .filter((each) => typeof each === 'string' || (typeof each === 'object' && each !== null));
}

function webAddress(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > maxUrlLength || !/^https?:\/\/[^\s<>()]+$/.test(value))
    return undefined;
  return URL.canParse(value) ? value : undefined;
}

/** Settings of a model for sherpa-onnx, by the names of the files that its archives contain. */

type ModelPlace = {
  /** The language that is spoken; absent: the model finds out. */
  readonly language: string | undefined;
  at(name: string): string;
};

/** Returns the library's `modelConfig` for a folder with these files; undefined if they are no model that it knows. */
export function sherpaModelIn(names: readonly string[], { language, at }: ModelPlace): object | undefined {
  const find = (pattern: RegExp) => {
    const found = names.filter((name) => pattern.test(name) && name.endsWith('.onnx'));
    // The smaller one of two precisions.
    const best = found.find((name) => name.includes('int8')) ?? found[0];
    return best === undefined ? undefined : at(best);
  };
  const tokens = names.find((name) => /(?:^|-)tokens\.txt$/.test(name));
  if (tokens === undefined) return undefined;
  const common = { tokens: at(tokens), numThreads: 1, provider: 'cpu' };
  const [encoder, decoder, joiner] = [find(/encoder/), find(/decoder/), find(/joiner/)];
  if (encoder && decoder && joiner) return { ...common, transducer: { encoder, decoder, joiner } };
  if (encoder && decoder)
    return { ...common, whisper: { encoder, decoder, task: 'transcribe', ...(language && { language }) } };
  const model = find(/^model/);
  if (model === undefined) return undefined;
  return { ...common, senseVoice: { model, useInverseTextNormalization: 1, ...(language && { language }) } };
}

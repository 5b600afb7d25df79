import type { Config } from '../../config/config.ts';
import { homeFolder } from '../../config/environment.ts';
import type { Disagreement } from '../agree-with-processes.ts';
import { askGateway } from '../ask-gateway.ts';
import { type DoctorCheck, failed, ok, warning } from './check.ts';

/** Whether this command sees the variables that the running processes see. */
export function checkEnvironment(differing: readonly Disagreement[]): readonly DoctorCheck[] {
  return differing.map(({ process: { pid, role }, lacking, extra }) => {
    const name = 'environment';
    const who = `the ${role === 'worker' ? 'worker' : 'gateway'} that runs (process ${pid})`;
    const fix = `run this with its environment, or put the variables into ${homeFolder()}/.env, which all of them read`;
    if (lacking.length === 0)
      return warning(
        name,
        `${who} doesn't have ${extra.join(', ')}, which are set here`,
        `restart it, or ${fix}`,
      );
    return warning(
      name,
      `${who} has ${lacking.join(', ')}, which aren't set here; what follows is what it says itself`,
      fix,
    );
  });
}

/** Model and networks as the running gateway knows them: with other variables, this command could only guess. */
export async function askAboutParts(config: Config): Promise<readonly DoctorCheck[]> {
  const answer = await askGateway(config);
  if (answer.kind !== 'running')
    return [
      warning(
        'gateway',
        "it can't be asked about its database, model and networks from here",
        'run this with its environment',
      ),
    ];
  const { model, channels, problems } = answer.status;
  return [
    model.isDemo
      ? warning('model', 'the demo model', 'set ANTHROPIC_API_KEY or OPENAI_API_KEY where the gateway runs')
      : ok('model', `${model.name}, as the gateway says`),
    ...channels.map(({ id, state, detail }) =>
      state === 'trouble'
        ? failed(id, detail, 'fix the cause named above; until then no messages arrive')
        : ok(id, `${state}; ${detail}, as the gateway says`),
    ),
    ...problems.map(({ id, text }) => failed(id, text, "check the gateway's log")),
  ];
}

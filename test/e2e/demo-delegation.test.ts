/** The demo model's delegation through the real gateway, as a newcomer sees it without a key. */
import { describe, test } from 'vitest';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { startStage } from './stage.ts';
import { until } from './until.ts';

describe.concurrent('a message that asks the demo model to delegate', () => {
  test('gets one answer from four subtasks, of which two run at the same time', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await startStage({ config: { model: 'demo' } }, onTestFinished);
    const person = stage.person('telegram');
    person.says('delegate tea');
    await until(() => person.standing().length > 1, { what: 'the answer' });
    await untilAtRest(stage.dataDir, 1);
    const [begun, answer] = person.standing();
    expect(begun).toContain('The answer comes when all have ended.');
    expect(answer).toContain('A text about tea, made from these results:');
    for (const id of ['outline', 'facts', 'views'])
      expect(answer).toMatch(new RegExp(`${id} \\(main\\): \\S`));
    expect(answer).toContain(
      "draft (self): A script knows little about “tea”, and says so in one text. I've read “facts” and “views”.",
    );
    expect(person.standing()).toHaveLength(2);
    expect(readStore(stage.dataDir, 'select state, told from tasks')).toEqual([
      { state: 'done', told: 'lane' },
    ]);
    const [views] = readStore(
      stage.dataDir,
      `select count(*) as n from subtasks one join subtasks other on one.id = 'facts' and other.id = 'views'
       where one.startedAt < other.endedAt and other.startedAt < one.endedAt`,
    );
    expect(views).toEqual({ n: 1 });
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });
});

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { commandCaught, commandCovered, readCommand } from '../src/command.js';
import { commandRisk } from '../src/command-risk.js';
import { isUnder, pathScope, targetScope } from '../src/path-scope.js';
import { check } from './property.js';

const word = fc.stringMatching(/^[a-z][a-z0-9_-]{0,8}$/);
const words = fc.array(word, { minLength: 1, maxLength: 5 });
const joined = fc.constantFrom('; ', ' && ', ' || ', ' | ', '\n');
const GIT = ['git status', 'git diff'];

describe('a prefix of a command', () => {
  it.each([
    ['git status', true],
    ['git status -s', true],
    ['git \'status\' "-s"', true],
    ['git status && git diff --stat', true],
    ['git diff | git status 2>&1 >/dev/null', true],
    ['git status; rm -rf x', false],
    ['git push', false],
    ['git', false],
    ['git statusx', false],
    ['git status > out', false],
    ['git status $(id)', false],
    ['git status `id`', false],
    ['git status $X', false],
    ['GIT_DIR=x git status', false],
    ['env git status', false],
    ['git status &', false],
    ['(git status)', false],
    ['git() { rm x; }; git status', false],
    ['git status <<E\nx\nE', false],
    ["git status 'open", false],
    ['git {status,push}', false],
    ['git status\u0000', false],
    ['', false],
  ])('covers %j: %j', (command, covered) => {
    expect(commandCovered(command, GIT)).toBe(covered);
  });

  it.each([
    ['git push', true],
    ['git push origin', true],
    ['true; git push', true],
    ['echo $(git push)', true],
    ['git --no-pager push', true],
    ['/usr/bin/git push', true],
    ['env X=1 git push', true],
    ["sh -c 'git push'", true],
    ["sh -c 'cd x && git push'", true],
    ['find . -exec git push \\;', true],
    ['$GIT push', true],
    ['git $WHAT', true],
    ["git 'open", true],
    ['git status', false],
    ['find . -name x -exec rm {} +', false],
    ['find . -exec git push {} +', true],
    ['echo git push', false],
    ["sh -c 'git status'", false],
  ])('catches %j: %j', (command, caught) => {
    expect(commandCaught(command, ['git push'])).toBe(caught);
  });

  it('covers what begins with its words, and a joined text only where it covers every part', () => {
    check(
      fc.property(fc.array(words, { minLength: 1, maxLength: 4 }), joined, words, (parts, join, prefix) => {
        const text = parts.map((part) => part.join(' ')).join(join);
        const begins = (part: string[]) => prefix.every((one, index) => part[index] === one);
        fc.pre(
          !parts
            .flat()
            .some((one) => /^(if|then|fi|do|done|for|in|case|esac|while|until|else|elif|time|select|function|coproc)$/.test(one)),
        );
        expect(commandCovered(text, [prefix.join(' ')])).toBe(parts.every(begins));
        if (parts.some(begins)) expect(commandCaught(text, [prefix.join(' ')])).toBe(true);
      }),
    );
  });

  it('covers nothing that it does not catch, whatever the text', () => {
    const piece = fc.oneof(
      word,
      fc.constantFrom(' ', ';', '&', '|', '$(', ')', '`', "'", '"', '\\', '>', '<', '\n', 'git', 'status', '${X}', '*', '{a,b}', '=', '#'),
    );
    check(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        if (commandCovered(text, GIT)) expect(commandCaught(text, GIT)).toBe(true);
        if (commandRisk(text) === 'low') expect(readCommand(text)?.plain).toBe(true);
      }),
    );
  });
});

describe('a look', () => {
  it.each([
    ["cat '/etc/passwd'", 'medium'],
    ['cat "$HOME/x"', 'medium'],
    ['cat {.env,x}', 'medium'],
    ['cat .*', 'medium'],
    ['cat a/../../x', 'medium'],
    ['sort --compress-program=./x f', 'medium'],
    ['sort -uo out in', 'medium'],
    ['grep -f list x', 'medium'],
    ['grep -R x src', 'medium'],
    ['grep --include=*.ts x src', 'medium'],
    ['grep --color=never x src', 'low'],
    ['head -n 5 a.txt', 'low'],
    ['find . -name x', 'high'],
    ['time ls', 'high'],
    ['command rm x', 'high'],
  ])('%j is rated %s', (command, risk) => {
    expect(commandRisk(command)).toBe(risk);
  });
});

describe('where a path leads', () => {
  it.each([
    ['a/b.txt', 'inside'],
    ['.', 'inside'],
    ['.env', 'inside'],
    ['a/..b', 'inside'],
    ['/etc/hosts', 'outside'],
    ['../a', 'outside'],
    ['a/../../b', 'outside'],
    ['a\\..\\b', 'outside'],
    ['C:\\x', 'outside'],
    ['~/x', 'outside'],
    ['', 'outside'],
    ['.agent-scopes/other/skill', 'closed'],
    ['a/.Agent-Scopes/x', 'closed'],
    ['/skills/.AGENT-SCOPES', 'closed'],
    ['a/.agent-scopes. /x', 'closed'],
    ['a/.agent\u00ad-scopes/x', 'closed'],
  ])('%j is %s', (path, scope) => {
    expect(pathScope(path)).toBe(scope);
  });

  it.each([
    ['cat .agent-scopes/b/SKILL.md', 'closed'],
    ['cat "x/.AGENT-SCOPES"/y', 'closed'],
    ['cat .agent*/b', 'closed'],
    ['cat .?gent-scopes/b', 'closed'],
    ['cat notes.md', 'inside'],
  ])('the command %j touches what is %s', (command, scope) => {
    expect(targetScope({ paths: [], cwd: '.', argv: [], command })).toBe(scope);
  });

  it('is never both under a folder and elsewhere, and the worst of several counts', () => {
    const segment = fc.constantFrom('a', 'b', '..', '.', '.agent-scopes', 'C:', '');
    check(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), fc.boolean(), (segments, absolute) => {
        const path = (absolute ? '/' : '') + segments.join('/');
        const scope = pathScope(path);
        if (isUnder(path, ['a'])) expect(scope).toBe('inside');
        if (segments.includes('.agent-scopes')) expect(scope).toBe('closed');
        else if (absolute || segments.includes('..')) expect(scope).toBe('outside');
        expect(targetScope({ paths: ['ok', path], cwd: null, argv: [], command: null })).toBe(scope);
      }),
    );
  });
});

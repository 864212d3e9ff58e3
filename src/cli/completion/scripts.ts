/** What each shell needs to ask 'cotenant complete' for the rest of a line. */
export const SCRIPTS = {
  bash: `# cotenant completion for bash. Put this into ~/.bashrc:  eval "$(cotenant completion bash)"
_cotenant() {
  local line=\${COMP_LINE:0:COMP_POINT} words=() cur= break prefix= value
  read -a words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  cur=\${words[\${#words[@]}-1]}
  # Bash cuts words at these: what stands before the last one is on the line already.
  for break in : =; do
    if [[ $COMP_WORDBREAKS == *"$break"* && $cur == *"$break"* ]]; then
      value=\${cur%"\${cur##*"$break"}"}
      ((\${#value} > \${#prefix})) && prefix=$value
    fi
  done
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    case $value in
      :files | :directories)
        compopt -o filenames 2>/dev/null
        local action=-f
        [[ $value == :directories ]] && action=-d
        while IFS= read -r value; do
          COMPREPLY+=("\${value#"$prefix"}")
        done < <(compgen "$action" -- "$cur")
        ;;
      ?*) COMPREPLY+=("$(printf %q "\${value#"$prefix"}")") ;;
    esac
  done < <("\${words[0]}" complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _cotenant cotenant git-cotenant
`,
  zsh: `#compdef cotenant git-cotenant
# cotenant completion for zsh. Put this into ~/.zshrc, after compinit:  eval "$(cotenant completion zsh)"
_cotenant() {
  local line value about
  local -a values shown
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      (:files) _files ;;
      (:directories) _files -/ ;;
      (?*)
        value=\${line%%$'\\t'*}
        about=\${line#*$'\\t'}
        values+=("$value")
        [[ $about == $line ]] && shown+=("$value") || shown+=("$value  -- $about")
        ;;
    esac
  done
  (( $#values )) && compadd -l -d shown -a values
}
if [[ $funcstack[1] == _cotenant ]]; then
  _cotenant "$@"
else
  compdef _cotenant cotenant git-cotenant
fi
`,
  fish: `# cotenant completion for fish. Put this into ~/.config/fish/config.fish:  cotenant completion fish | source
function __cotenant_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    for line in (command $program complete -- $words "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':directories'
                __fish_complete_directories "$current"
            case '*'
                echo $line
        end
    end
end
complete -c cotenant -f -a '(__cotenant_complete)'
complete -c git-cotenant -f -a '(__cotenant_complete)'
`,
} as const;

export type Shell = keyof typeof SCRIPTS;
export const SHELLS = Object.keys(SCRIPTS) as readonly Shell[];

(* `compiler VERB [options]` reads a program from standard input. Its answer goes to standard
   output with exit status 0; faults of the program go to standard error with exit status 1, each
   as FILE:LINE:COL: CODE message. *)

let read_program () =
  let program = Buffer.create 65536 in
  (try
     while true do
       Buffer.add_channel program stdin 1
     done
   with End_of_file -> ());
  Buffer.contents program

let () =
  set_binary_mode_in stdin true;
  match if Array.length Sys.argv > 1 then Sys.argv.(1) else "" with
  | ("simplify" | "compile") as verb ->
      let length = String.length (read_program ()) in
      Printf.eprintf "<stdin>:1:1: E000 %s of these %d bytes is not implemented\n" verb length;
      exit 1
  | verb ->
      Printf.eprintf "expected one of the verbs simplify, compile, got \"%s\"\n" verb;
      exit 1

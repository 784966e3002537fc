package canonjson_test

import (
	"fmt"
	"os"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

func Example() {
	value, err := canonjson.Parse([]byte(`{ "b": 12.50, "a": "\u00fc", "B": [1e3, -0] }`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", value.Append(nil))
	// Output: {"B":[1000,0],"a":"ü","b":12.5}
}

func ExampleParse() {
	_, err := canonjson.Parse([]byte(`{"a":1,"\u0061":2}`))
	fmt.Println(err)
	// Output: key "a" occurs twice in one object
}

func ExampleObject_Members() {
	value, _ := canonjson.Parse([]byte(`{"dist/b":"x","dist/a":"y"}`))
	object, _ := value.Object()
	for name, member := range object.Members() {
		text, _ := member.Text()
		fmt.Println(name, text)
	}
	// Output:
	// dist/a y
	// dist/b x
}

func ExampleValue_WriteTo() {
	value, _ := canonjson.Parse([]byte("[ 1, 2 ]"))
	_, _ = value.WriteTo(os.Stdout)
	// Output: [1,2]
}
